package httpapi

import (
	"net/http"
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
