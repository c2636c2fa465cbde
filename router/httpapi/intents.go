package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router"
)

// maxWait bounds Prefer: wait.
const maxWait = 60 * time.Second

// submit takes a signed intent. It needs no bearer: the intent is the credential. A dry run decides
// and leaves no trace; it is never for a task's key, and its actor needs policy:explain.
func (s *server) submit(c *gin.Context) error {
	raw, err := bodyOf(c, intents.MaxSize, "an intent has at most 49152 bytes")
	if err != nil {
		return err
	}
	dry, err := wantsDryRun(c)
	if err != nil {
		return err
	}
	ctx, within := c.Request.Context(), wait(c.GetHeader("Prefer"))
	a, ok := clock.DoUntilStop(ctx, func() *intents.Answer {
		var a *intents.Answer
		var err error
		if dry {
			a, err = s.cfg.Router.DryRun(ctx, raw)
		} else {
			a, err = s.cfg.Router.SubmitAndWait(ctx, raw, within)
		}
		if err != nil {
			a = router.RefusalAnswer(raw, err)
		}
		return a
	})
	if !ok || a.Code == intents.Internal && clock.Stopping(ctx) {
		return s.stopped(ctx, raw)
	}
	if a.Duplicate && a.Outcome != nil && prefers(c, duplicateConflict) {
		return conflict(c, a)
	}
	return answer(c, a)
}

// joinTime bounds the wait for the state of an intent when the process stops.
const joinTime = 300 * time.Millisecond

// stopped answers the sender of an intent whose process stops before there is a result, with the
// decision if there is one: the same intent once more joins the first.
func (s *server) stopped(ctx context.Context, raw []byte) error {
	u, err := intents.Parse(raw)
	if err != nil {
		return err
	}
	p := problem.Stopped(u.ID(), "")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), joinTime)
	defer cancel()
	joined := make(chan *intents.Answer, 1)
	go func() {
		if a, err := s.cfg.Router.SubmitAndWait(ctx, raw, 0); err == nil {
			joined <- a
		}
	}()
	select {
	case a := <-joined:
		p.Position, p.Decision, p.Outcome, p.Receipt = a.Position, a.Decision, a.Outcome, a.Receipt
	case <-ctx.Done():
	}
	return p
}

// duplicateConflict is the preference (RFC 7240) of a client that wants an error if its intent was
// executed before.
const duplicateConflict = "duplicate=conflict"

// conflict refuses a duplicate, and includes the existing result.
func conflict(c *gin.Context, a *intents.Answer) error {
	c.Header("Preference-Applied", duplicateConflict)
	p := problem.New(intents.ConflictIdempotency, "/constraints/idempotency_key", "the intent was accepted before, and nothing ran again: outcome is its result")
	p.Hint = "take the result from outcome; without Prefer: " + duplicateConflict + " it is answered as the first time"
	p.IntentID, p.TraceID, p.Position, p.Decision, p.Outcome, p.Receipt = a.IntentID, a.TraceID, a.Position, a.Decision, a.Outcome, a.Receipt
	return p
}

// prefers reports whether a request has a preference. Names are not case-sensitive.
func prefers(c *gin.Context, what string) bool {
	for _, line := range c.Request.Header.Values("Prefer") {
		for p := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(p), what) {
				return true
			}
		}
	}
	return false
}

// wantsDryRun reads ?dry_run. A misspelt value must not execute the intent.
func wantsDryRun(c *gin.Context) (bool, error) {
	v, given := c.GetQuery("dry_run")
	if given && v != "true" && v != "false" {
		return false, problem.New(intents.SchemaInvalid, "", "dry_run is true or false")
	}
	return v == "true", nil
}

// bodyOf reads the body of a request, up to a size in bytes.
func bodyOf(c *gin.Context, size int64, tooLarge string) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, size+1))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, problem.New(intents.PayloadTooLarge, "", tooLarge)
	case errors.Is(err, errCrowded):
		return nil, crowded("too many batches are being sent")
	case err != nil:
		return nil, problem.New(intents.SchemaInvalid, "", "the body could not be read")
	}
	return raw, nil
}

// wait reads "Prefer: wait=n" (RFC 7240).
func wait(prefer string) time.Duration {
	for p := range strings.SplitSeq(prefer, ",") {
		value, ok := strings.CutPrefix(strings.TrimSpace(p), "wait=")
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			return min(time.Duration(n)*time.Second, maxWait)
		}
	}
	return 0
}

// answer writes an answer: done and held ones as they are, all others as a problem.
func answer(c *gin.Context, a *intents.Answer) error {
	if a.Code == intents.ApprovalRequired || a.Code == intents.InFlight {
		c.Header("Location", c.GetString(rootKey)+"/v1/intents/"+a.IntentID)
	}
	if a.Code == intents.OK || a.Code == intents.ApprovalRequired {
		c.JSON(a.Code.Info().Status, a)
		return nil
	}
	p := problem.OfAnswer(a)
	p.Position, p.Decision, p.Outcome, p.Receipt = a.Position, a.Decision, a.Outcome, a.Receipt
	return p.ForSigner()
}
