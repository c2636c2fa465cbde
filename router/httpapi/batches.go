package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// batch takes signed intents that are accepted together or not at all.
func (s *server) batch(c *gin.Context) error {
	dry, err := wantsDryRun(c)
	if err != nil {
		return err
	}
	sent := &reader{Reader: c.Request.Body, in: &s.intake, address: edge.Address(c.Request.RemoteAddr)}
	defer sent.Close()
	c.Request.Body = sent
	raw, err := bodyOf(c, intents.MaxBatchSize, "a batch has at most 1048576 bytes")
	if err != nil {
		return err
	}
	ctx, within := c.Request.Context(), wait(c.GetHeader("Prefer"))
	b, ok := clock.DoUntilStop(ctx, func() *intents.BatchAnswer {
		if dry {
			return s.cfg.Router.DryRunBatch(ctx, raw)
		}
		return s.cfg.Router.SubmitBatch(ctx, raw, within)
	})
	if !ok || b.Code == intents.Internal && clock.Stopping(ctx) {
		p := problem.Stopped("", "")
		p.Hint = "after the restart send the same batch again: intents that were accepted are not carried out twice"
		return p
	}
	if b.Code == intents.OK {
		c.JSON(http.StatusOK, b)
		return nil
	}
	p := problem.New(b.Code, b.Pointer, b.Reason)
	at := b.Fault
	if at == nil && b.Index != nil {
		at = b.Answers[*b.Index]
	}
	if at != nil {
		p = problem.OfAnswer(at)
		p.Pointer, p.RetryAfter = b.Pointer, time.Duration(at.RetryAfter)*time.Second
	}
	if b.Hint != "" {
		p.Hint = b.Hint
	}
	p.Index, p.Answers = b.Index, b.Answers
	return p.ForSigner()
}

// crowded asks a client to try again soon.
func crowded(detail string) *problem.Problem {
	p := problem.New(intents.Overloaded, "", detail)
	p.RetryAfter = time.Second
	return p
}

// Bounds in bytes of what has been read of batches and is not yet answered: in all, and from one
// address. A slow sender occupies only what it has sent, and delays nobody else.
const (
	intakeSize    = 128 << 20
	intakeAddress = 16 << 20
	intakeStep    = 64 << 10 // is read at a time
)

// errCrowded says that too many batches are being read.
var errCrowded = errors.New("too many batches are being read")

// intake counts the bytes of bodies.
type intake struct {
	mu   sync.Mutex // guards what follows
	held int
	from map[string]int
}

// take reserves n more bytes for an address, or nothing.
func (in *intake) take(address string, n int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.held+n > intakeSize || in.from[address]+n > intakeAddress {
		return false
	}
	in.held += n
	in.from[address] += n
	return true
}

func (in *intake) give(address string, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.held -= n
	if in.from[address] -= n; in.from[address] == 0 {
		delete(in.from, address)
	}
}

// reader reserves what it reads from the intake, until it is closed.
type reader struct {
	io.Reader
	in       *intake
	address  string
	reserved int
	left     int // reserved bytes not read into yet
}

func (r *reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		if !r.in.take(r.address, intakeStep) {
			return 0, errCrowded
		}
		r.reserved, r.left = r.reserved+intakeStep, intakeStep
	}
	n, err := r.Reader.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// Close frees the reservation. The bytes must not be used afterwards.
func (r *reader) Close() error {
	r.in.give(r.address, r.reserved)
	return nil
}
