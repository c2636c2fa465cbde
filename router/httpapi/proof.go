package httpapi

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// receipt is the router's signed statement about an intent. A refused intent has none.
func (v *visitor) receipt() (any, error) {
	a, err := v.intent()
	if err != nil {
		return nil, err
	}
	if a.Receipt == "" {
		return nil, problem.New(intents.NotFound, "", "a refused intent has no receipt")
	}
	return gin.H{"intent_id": a.IntentID, "position": a.Position, "receipt": a.Receipt}, nil
}

// proof shows that an intent's record is in the log: everything needed by a verifier that has
// pinned the root key, and nothing of the intent itself. An intent that was committed just now is
// in the next checkpoint.
func (v *visitor) proof() (any, error) {
	a, err := v.intent()
	if err != nil {
		return nil, err
	}
	doc, published, err := v.s.cfg.Ledger.Proof(v.Request.Context(), *a.Position)
	if err != nil {
		return nil, fmt.Errorf("proof of position %d: %w", *a.Position, err)
	}
	if !published {
		v.Header("Retry-After", "1")
		return nil, problem.New(intents.InFlight, "", "the record is in the next checkpoint")
	}
	return gin.H{"intent_id": a.IntentID, "receipt": a.Receipt, "inclusion": doc, "keys": v.s.cfg.State.JWKS()}, nil
}
