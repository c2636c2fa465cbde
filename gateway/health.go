package gateway

import (
	"github.com/gin-gonic/gin"

	"aob.dev/writ/internal/bus"
)

// ready is GET /readyz: the router answers who somebody is.
func (g *Gateway) ready(c *gin.Context) error {
	_, err := ask[bus.APIKeyReply](c.Request.Context(), g.cfg.Bus, bus.DirectoryAPIKey, bus.APIKeyRequest{})
	return respond(c, gin.H{"status": "ok"}, err)
}
