package gateway

import (
	"encoding/json"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents/catalog"
)

// soulRequest is the body of PUT /agent/souls/{tenant_id}. Its user_id names the owner of the
// soul, not the caller; without one it is the tenant's.
type soulRequest struct {
	UserID   string          `json:"user_id,omitempty"`
	Persona  catalog.Persona `json:"persona"`
	Policies json.RawMessage `json:"policies,omitempty"`
}

// putSoul is PUT /agent/souls/{tenant_id}.
func (g *Gateway) putSoul(c *gin.Context, who caller) error {
	var body soulRequest
	if err := readBody(c, &body); err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, claim{Tenant: c.Param("tenant_id")})
	if err != nil {
		return err
	}
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	soul, err := request[catalog.Soul](ctx, g, a, "soul.put", catalog.SoulPut(body), "")
	return respond(c, soul, err)
}
