package httpapi

import (
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// receipt is the router's signed word about an order. A refused one has none.
func (s *server) receipt(c *gin.Context) {
	a := s.order(c)
	if a == nil {
		return
	}
	if a.Receipt == "" {
		s.refuse(c, problem.New(intents.NotFound, "", "a refused order has no receipt"))
		return
	}
	c.JSON(http.StatusOK, gin.H{"intent_id": a.IntentID, "position": a.Position, "receipt": a.Receipt})
}

// proof shows that an order's record is in the log: what anybody needs who has
// pinned the root key, and nothing of the order itself. An order that was
// committed just now is in the next checkpoint.
func (s *server) proof(c *gin.Context) {
	a := s.order(c)
	if a == nil {
		return
	}
	doc, published, err := s.cfg.Ledger.Proof(c.Request.Context(), *a.Position)
	if err != nil {
		s.cfg.Log.Error("proof", slog.Int64("position", *a.Position), slog.String("error", err.Error()))
		s.refuse(c, problem.Of(err))
		return
	}
	if !published {
		c.Header("Retry-After", "1")
		s.refuse(c, problem.New(intents.InFlight, "", "the record is in the next checkpoint"))
		return
	}
	c.JSON(http.StatusOK, gin.H{"intent_id": a.IntentID, "receipt": a.Receipt, "inclusion": doc, "keys": s.cfg.State.JWKS()})
}
