package gateway

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
)

// me is the answer of GET /v1/me.
type me struct {
	Tenant string   `json:"tenant_id"`
	User   string   `json:"user_id"`
	Roles  []string `json:"roles"`
}

// getMe is GET /v1/me: the user for whom a request with this key acts. With ?capability= it is
// refused unless the roles cover that capability.
func (g *Gateway) getMe(c *gin.Context, who caller) error {
	ctx := c.Request.Context()
	a, err := g.identify(ctx, who, claim{})
	if err == nil && c.Query("capability") != "" {
		err = g.covers(ctx, a, c.Query("capability"))
	}
	return respond(c, me{a.tenant, a.user, a.roles}, err)
}

type pacedKey struct{}

// Paced marks a request of a part of this process that has counted its user's requests itself,
// such as the console, which makes many for one page. The rate does not count it.
func Paced(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), pacedKey{}, true))
}

func isPaced(ctx context.Context) bool { return ctx.Value(pacedKey{}) != nil }
