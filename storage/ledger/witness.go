package ledger

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/egress"
)

// Witness is a third party that cosigns checkpoints of one log only: it has checked
// that each continues the one before (C2SP tlog-witness).
type Witness struct {
	Key *WitnessKey
	URL string // prefix of /add-checkpoint
}

// ParseWitness reads "<verifier key> <URL>".
func ParseWitness(s string) (Witness, error) {
	vkey, url, ok := strings.Cut(strings.TrimSpace(s), " ")
	if url = strings.TrimSpace(url); !ok || !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
		return Witness{}, errors.New("a witness is <verifier key> <URL>")
	}
	key, err := ParseWitnessKey(vkey)
	return Witness{key, strings.TrimSuffix(url, "/")}, err
}

// Waits of the client: one request, and between two that failed. A log that
// grows asks each witness at most once in witnessEvery.
const (
	witnessTimeout = 5 * time.Second
	witnessEvery   = 500 * time.Millisecond
	witnessMaxWait = time.Minute
	maxAnswer      = 16 << 10
)

// Witnesses gets cosignatures for the published checkpoints of a log. It delays neither
// intents nor checkpoints: a witness that does not answer delays only its own
// cosignature.
type Witnesses struct {
	log       *Reader
	keys      func() []intents.Key // of the log
	witnesses []Witness
	client    *http.Client
	logger    *slog.Logger

	// Contradicted, if set before Run, is called when a witness knows more of the
	// log than there is, or another one. Several goroutines may call it, repeatedly.
	Contradicted func(witness string, err error)

	mu       sync.Mutex        // guards what follows and the file
	cosigned Checkpoint        // whose cosignatures are stored
	lines    map[string]string // witness to its signature line
}

// NewWitnesses of a log whose checkpoints are signed by one of keys.
func NewWitnesses(log *Reader, keys func() []intents.Key, logger *slog.Logger, witnesses ...Witness) *Witnesses {
	named := make([]string, len(witnesses))
	for i, x := range witnesses {
		named[i] = x.URL
	}
	client := egress.Client(egress.Transport(named...))
	client.Timeout = witnessTimeout
	return &Witnesses{log: log, keys: keys, witnesses: witnesses, client: client, logger: logger, lines: map[string]string{}}
}

// witnessState is one witness and how it has answered.
type witnessState struct {
	Witness
	size  int64 // that it has; 0 if that is not known
	done  int64 // of the last checkpoint that it cosigned
	wait  time.Duration
	until time.Time // left alone until then
}

// ErrContradicted reports that a witness knows another log: the log was restored
// from an older copy, or the witness lies.
var ErrContradicted = errors.New("the witness has seen another log")

// Once requests cosignatures of the published checkpoint from every witness, and waits for them. One that is
// down is skipped silently.
func (w *Witnesses) Once(ctx context.Context) {
	c, err := w.log.Checkpoint(ctx, w.keys()...)
	if err != nil || c.Size == 0 {
		return
	}
	w.round(ctx, w.all(ctx), c)
}

// all of them, with the size that each should have.
func (w *Witnesses) all(ctx context.Context) []*witnessState {
	all := make([]*witnessState, 0, len(w.witnesses))
	before, err := w.log.LatestCosigned(ctx, w.keys()...)
	for _, x := range w.witnesses {
		a := &witnessState{Witness: x}
		if err == nil && len(Cosigners(before.Note, x.Key)) > 0 {
			a.size = before.Size
		}
		all = append(all, a)
	}
	return all
}

// Run requests cosignatures until ctx ends. All witnesses get one checkpoint at a
// time, so that their cosignatures are stored together; one that fails is retried
// after growing pauses.
func (w *Witnesses) Run(ctx context.Context) error {
	all := w.all(ctx)
	_ = clock.Every(ctx, witnessEvery, func() (done bool) {
		if c, err := w.log.Checkpoint(ctx, w.keys()...); err == nil && c.Size > 0 {
			w.round(ctx, all, c)
		}
		return false
	})
	return nil
}

// round asks all that have not cosigned a checkpoint, and waits for them.
func (w *Witnesses) round(ctx context.Context, all []*witnessState, c Checkpoint) {
	var asking sync.WaitGroup
	for _, a := range all {
		if a.done == c.Size || time.Now().Before(a.until) {
			continue
		}
		asking.Go(func() {
			if err := w.ask(ctx, a.Witness, c, a.size); err != nil {
				if w.Contradicted != nil && errors.Is(err, ErrContradicted) {
					w.Contradicted(a.Key.Name(), err)
				}
				a.wait = min(max(2*a.wait, 2*witnessEvery), witnessMaxWait)
				a.until = time.Now().Add(a.wait)
				if ctx.Err() == nil {
					w.logger.WarnContext(ctx, "a checkpoint is not cosigned", slog.String("witness", a.Key.Name()), slog.String("error", err.Error()))
				}
				return
			}
			a.size, a.done, a.wait = c.Size, c.Size, 0
		})
	}
	asking.Wait()
}

// ask requests a cosignature from a witness that should have the given size. If
// it reports another one, ask tries once more.
func (w *Witnesses) ask(ctx context.Context, x Witness, c Checkpoint, size int64) error {
	line, err := w.add(ctx, x, c, size)
	if has := conflictError(0); errors.As(err, &has) {
		if int64(has) > c.Size {
			return fmt.Errorf("%w: it has seen %d records of this log, which has %d", ErrContradicted, has, c.Size)
		}
		line, err = w.add(ctx, x, c, int64(has))
	}
	if err != nil {
		return err
	}
	return w.keep(c, x.Key.Name(), line)
}

// conflictError is the size that the witness has, if it is not the one that was sent.
type conflictError int64

func (e conflictError) Error() string { return fmt.Sprintf("the witness has size %d", int64(e)) }

// add is one add-checkpoint request.
func (w *Witnesses) add(ctx context.Context, x Witness, c Checkpoint, old int64) (string, error) {
	body := fmt.Appendf(nil, "old %d\n", old)
	if old > 0 {
		hashes, err := w.log.Prover(c.Size).Consistency(ctx, old)
		if err != nil {
			return "", err
		}
		for _, h := range hashes {
			body = append(base64.StdEncoding.AppendEncode(body, h), '\n')
		}
	}
	body = append(append(body, '\n'), c.Note...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL+"/add-checkpoint", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := w.client.Do(req)
	if err != nil {
		return "", x.server().Fault(err)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return "", x.server().Fault(err)
	}
	fault := egress.Status(res.StatusCode)
	switch res.StatusCode {
	case http.StatusOK:
		line, err := x.Key.cosign(c.Note, answer)
		if err == nil {
			return line, nil
		}
		fault = &egress.ReasonError{Message: "its answer has no cosignature by the key that is named for it", Mend: egress.Name, Err: err}
	case http.StatusConflict:
		text, ended := strings.CutSuffix(string(answer), "\n")
		size, err := strconv.ParseInt(text, 10, 64)
		if err == nil && ended && size >= 0 && size != old {
			return "", conflictError(size)
		}
		fault.Message = "it has another size of this log, and does not say which (HTTP 409)"
	case http.StatusNotFound:
		fault.Message = "it does not know this log, which has to be added there (HTTP 404)"
	case http.StatusForbidden:
		fault.Message = "it knows this log by another key (HTTP 403)"
	case http.StatusUnprocessableEntity:
		return "", fmt.Errorf("%w: it finds no way from what it has seen to this checkpoint", ErrContradicted)
	}
	return "", x.server().Fault(fault)
}

// server names a witness in errors.
func (x Witness) server() egress.Server {
	return egress.Server{
		Name: "the witness " + x.Key.Name() + " at " + x.URL, Unaffected: "the log goes on, and its checkpoint waits for the cosignature",
		Address: "witnesses (--witnesses)",
	}
}

// cosignedFile holds the newest checkpoint that a witness has cosigned.
const cosignedFile = "cosigned"

// keep stores a cosignature, with the others over the same checkpoint. The
// file is replaced whole and durable; a crash leaves the old one.
func (w *Witnesses) keep(c Checkpoint, witness, line string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.Size < w.cosigned.Size:
		return nil // an answer that came late
	case c.Size > w.cosigned.Size || c.Note != w.cosigned.Note:
		w.cosigned = c
		clear(w.lines)
	}
	w.lines[witness] = line
	text := c.Note
	for _, x := range w.witnesses {
		text += w.lines[x.Key.Name()]
	}
	return durable.Write(filepath.Join(w.log.dir, cosignedFile), []byte(text))
}

// LatestCosigned is the newest checkpoint with cosignatures, verified with one of the
// log's keys. The error wraps fs.ErrNotExist where no witness has cosigned yet.
func (r *Reader) LatestCosigned(_ context.Context, keys ...intents.Key) (Checkpoint, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, cosignedFile))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("ledger: %w", err)
	}
	return OpenCheckpoint(string(text), r.origin, keys...)
}
