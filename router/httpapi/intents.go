package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router"
)

// maxWait bounds Prefer: wait.
const maxWait = 60 * time.Second

// submit takes a sealed order. No bearer: the order is the credential.
func (s *server) submit(c *gin.Context) {
	raw, ok := s.body(c, intents.MaxSize, "an order has at most 49152 bytes")
	if !ok {
		return
	}
	if dry, ok := s.wantsDryRun(c); !ok {
		return
	} else if dry {
		s.dryRun(c, raw)
		return
	}
	a, err := s.cfg.Router.SubmitAndWait(c.Request.Context(), raw, wait(c.GetHeader("Prefer")))
	if err != nil {
		a = router.Refused(raw, err)
	}
	s.answer(c, a)
}

// wantsDryRun reads ?dry_run. Not ok: it has answered, since what is misspelt must
// not be carried out.
func (s *server) wantsDryRun(c *gin.Context) (dry, ok bool) {
	v, given := c.GetQuery("dry_run")
	if given && v != "true" && v != "false" {
		s.refuse(c, problem.New(intents.SchemaInvalid, "", "dry_run is true or false"))
		return false, false
	}
	return v == "true", true
}

// body reads a request's, up to a size in bytes. Not ok: it has answered.
func (s *server) body(c *gin.Context, size int64, tooLarge string) ([]byte, bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, size+1))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.refuse(c, problem.New(intents.PayloadTooLarge, "", tooLarge))
	case errors.Is(err, errCrowded):
		s.refuse(c, crowded("too many batches are being sent"))
	case err != nil:
		s.refuse(c, problem.New(intents.SchemaInvalid, "", "the body could not be read"))
	}
	return raw, err == nil
}

// dryRun decides and leaves no trace. It is never for a task's key, and its
// actor needs policy:explain.
func (s *server) dryRun(c *gin.Context, raw []byte) {
	a, err := s.cfg.Router.DryRun(c.Request.Context(), raw)
	if err != nil {
		a = router.Refused(raw, err)
	}
	s.answer(c, a)
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

// answer writes an answer: done and held ones as they are, all else as a problem.
func (s *server) answer(c *gin.Context, a *intents.Answer) {
	if a.Code == intents.ApprovalRequired || a.Code == intents.InFlight {
		c.Header("Location", "/v1/intents/"+a.IntentID)
	}
	if a.Code == intents.OK || a.Code == intents.ApprovalRequired {
		c.JSON(a.Code.Info().Status, a)
		return
	}
	p := problem.OfAnswer(a)
	p.Position, p.Decision, p.Outcome, p.Receipt = a.Position, a.Decision, a.Outcome, a.Receipt
	s.refuse(c, p)
}
