package policies

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/storage"
)

// Limits of an untrusted tree.
const (
	apartMemory = 512 << 20        // bytes
	apartTime   = 60 * time.Second // in total
	apartAnswer = 1 << 20          // bytes of one answer
)

var apartCPU = 20 // seconds on one processor

// errApart is the error of a tree that exceeded its limits.
var errApart = fmt.Errorf("the policy took more than %d MiB of memory, %d s of processor time or %s: nothing was changed; make it simpler, "+
	"or have an operator try it: writ policy backtest --policy DIR --data DIR", apartMemory>>20, apartCPU, apartTime)

// Subprocess evaluates an untrusted tree outside this process: the tree is compiled and
// evaluated in a process of its own, with limits, and sees the directory data of one tenant.
// Several goroutines may use its Engine; calls are serialized.
type Subprocess struct {
	ctx  context.Context // ends with the process
	end  context.CancelCauseFunc
	stop context.CancelFunc
	cmd  *exec.Cmd

	mu     sync.Mutex // guards the fields below
	in     *json.Encoder
	out    *bufio.Scanner
	knows  storage.Store // the generation of data that the process has
	engine *Engine
}

// apartQuestion is sent to the process, one member at a time.
type apartQuestion struct {
	Source Source         `json:"source,omitempty"`
	Data   *Data          `json:"data,omitempty"` // has no response
	Input  map[string]any `json:"input,omitempty"`
	Hidden [][]string     `json:"hidden,omitempty"` // paths of the input where marks stand
}

// apartAnswered is the response.
type apartAnswered struct {
	Refused string     `json:"refused,omitempty"` // why the tree is not accepted
	Result  Result     `json:"result"`
	Read    [][]string `json:"read,omitempty"` // the hidden paths that rules read
}

// NewApart starts the process and compiles a tree in it. The error lists the faults of the tree.
// Close ends the process.
func NewApart(ctx context.Context, source Source, tenant string) (*Subprocess, error) {
	ctx, stop := context.WithTimeout(ctx, apartTime)
	ctx, end := context.WithCancelCause(ctx)
	a := &Subprocess{ctx: ctx, end: end, stop: stop}
	got, err := a.start(source)
	if err == nil && got.Refused != "" {
		err = errors.New(got.Refused)
	}
	if err == nil {
		t := &tree{source: source.Deciding(), digest: source.Digest(), reads: &ReadSet{All: true}, subprocess: a, tenant: tenant}
		a.engine, err = (&Engine{tree: t}).WithData(ctx, Data{})
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *Subprocess) start(source Source) (got apartAnswered, err error) {
	// The running program, even if its file has been replaced. It inherits no variable and no
	// descriptor but its two pipes.
	a.cmd = exec.CommandContext(a.ctx, "/proc/self/exe")
	a.cmd.Args, a.cmd.Env, a.cmd.Dir = []string{apartName}, []string{apartMarker + "=" + strconv.Itoa(apartCPU)}, os.TempDir()
	in, err := a.cmd.StdinPipe()
	if err != nil {
		return got, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return got, err
	}
	if err = a.cmd.Start(); err != nil {
		return got, fmt.Errorf("a policy is tried in a process of its own, which does not start: %w", err)
	}
	a.in, a.out = json.NewEncoder(in), bufio.NewScanner(out)
	a.out.Buffer(nil, apartAnswer)
	return a.exchange(apartQuestion{Source: source})
}

// Engine of the tree, over no directory data yet.
func (a *Subprocess) Engine() *Engine { return a.engine }

// Context ends with the process: later calls fail.
func (a *Subprocess) Context() context.Context { return a.ctx }

// Err reports that the tree exceeded its limits; nil: it did not, or the caller has gone.
func (a *Subprocess) Err() error {
	if cause := context.Cause(a.ctx); errors.Is(cause, errApart) || errors.Is(cause, context.DeadlineExceeded) {
		return errApart
	}
	return nil
}

// Close ends the process.
func (a *Subprocess) Close() {
	a.end(context.Canceled)
	a.stop()
	if a.cmd.Process != nil {
		_ = a.cmd.Wait() // it was killed
	}
}

// ask evaluates an input over a generation of data, and returns the hidden values that rules
// read.
func (a *Subprocess) ask(data Data, generation storage.Store, input map[string]any, hidden []hiddenInput) (Result, []hiddenInput, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.knows != generation {
		if err := a.in.Encode(apartQuestion{Data: &data}); err != nil {
			return Result{}, nil, a.lost()
		}
		a.knows = generation
	}
	q := apartQuestion{Input: input}
	for _, u := range hidden {
		q.Hidden = append(q.Hidden, u.path)
	}
	got, err := a.exchange(q)
	read := slices.DeleteFunc(slices.Clone(hidden), func(u hiddenInput) bool {
		return !slices.ContainsFunc(got.Read, func(path []string) bool { return slices.Equal(path, u.path) })
	})
	return got.Result, read, err
}

func (a *Subprocess) exchange(q apartQuestion) (got apartAnswered, err error) {
	if a.in.Encode(q) != nil || !a.out.Scan() || json.Unmarshal(a.out.Bytes(), &got) != nil {
		return got, a.lost()
	}
	return got, nil
}

// lost is the error of a process that ended by itself.
func (a *Subprocess) lost() error {
	a.end(errApart)
	if err := a.Err(); err != nil {
		return err
	}
	return context.Cause(a.ctx)
}

const (
	apartName   = "writ-policy"
	apartMarker = "WRIT_POLICY_APART" // environment variable: makes a process of this program the other end; its value is the processor time in seconds
)

// init never returns in the process of a Subprocess.
func init() {
	seconds, err := strconv.ParseUint(os.Getenv(apartMarker), 10, 16)
	if len(os.Args) != 1 || os.Args[0] != apartName || err != nil {
		return
	}
	if limitApart(seconds) != nil || serveApart(json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// serveApart answers until the input ends.
func serveApart(in *json.Decoder, out *json.Encoder) error {
	ctx := context.Background()
	var e *Engine
	in.UseNumber()
	for in.More() {
		var q apartQuestion
		err := in.Decode(&q)
		switch {
		case err != nil:
		case q.Data != nil:
			e, err = e.WithData(ctx, *q.Data)
		case q.Source != nil:
			if e, err = New(ctx, q.Source); err != nil {
				return out.Encode(apartAnswered{Refused: fmt.Sprintf("%.16000s", err)})
			}
			e = e.WithoutDeadline() // as when decisions are repeated
			err = out.Encode(apartAnswered{})
		default:
			var got apartAnswered
			if got, err = e.tried(ctx, q); err == nil {
				err = out.Encode(got)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tried decides the input of a question.
func (e *Engine) tried(ctx context.Context, q apartQuestion) (got apartAnswered, err error) {
	var hidden, read []hiddenInput
	for _, path := range q.Hidden {
		if e.reads.includes(path) {
			hidden = append(hidden, hiddenInput{path: path})
		}
	}
	got.Result, read, err = e.watched(ctx, q.Input, hidden)
	for _, u := range read {
		got.Read = append(got.Read, u.path)
	}
	return got, err
}
