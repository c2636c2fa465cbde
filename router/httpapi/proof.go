package httpapi

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// receipt is the router's signed statement about an intent. A refused intent has none.
func (s *server) receipt(c *gin.Context) error {
	a, err := s.intent(c)
	if err != nil {
		return err
	}
	if a.Receipt == "" {
		return problem.New(intents.NotFound, "", "a refused intent has no receipt")
	}
	c.JSON(http.StatusOK, gin.H{"intent_id": a.IntentID, "position": a.Position, "receipt": a.Receipt})
	return nil
}

// proof shows that an intent's record is in the log: everything needed by a verifier that has
// pinned the root key, and nothing of the intent itself. An intent that was committed just now is
// in the next checkpoint.
func (s *server) proof(c *gin.Context) error {
	a, err := s.intent(c)
	if err != nil {
		return err
	}
	doc, published, err := s.cfg.Ledger.Proof(c.Request.Context(), *a.Position)
	if err != nil {
		return fmt.Errorf("proof of position %d: %w", *a.Position, err)
	}
	if !published {
		c.Header("Retry-After", "1")
		return problem.New(intents.InFlight, "", "the record is in the next checkpoint")
	}
	c.JSON(http.StatusOK, gin.H{"intent_id": a.IntentID, "receipt": a.Receipt, "inclusion": doc, "keys": s.cfg.State.JWKS()})
	return nil
}
