package httpapi

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
)

// inForce is GET /v1/policy: the policy that decides now.
type inForce struct {
	Digest   string `json:"digest"`
	Revision int64  `json:"revision,omitempty"` // absent: the tree has none
	Since    string `json:"since"`              // RFC 3339: when this process put it in force
	Refused  int64  `json:"refused"`            // trees that were not put in force since it began
}

func (s *server) policy(c *gin.Context) error {
	g, _, err := s.reader(c)
	if err == nil && g.Standing() {
		err = intents.Refuse(intents.GrantInvalid, "", "a standing grant reads what its plan did and nothing else")
	}
	if err != nil {
		return err
	}
	live := s.cfg.Policy
	e := live.Engine()
	c.JSON(http.StatusOK, inForce{e.Digest(), e.Revision(), live.Since().UTC().Format(time.RFC3339), live.Refused()})
	return nil
}
