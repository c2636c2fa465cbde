package gateway

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem/edge"
)

// grantReply is the answer of POST /v1/grants: a grant and its content, so that a client that
// signs an intent under it need not parse it.
type grantReply struct {
	Grant   string   `json:"grant"`      // to sign under
	Reading string   `json:"read_grant"` // bearer of reads
	Expires string   `json:"expires_at"` // RFC 3339
	Origin  string   `json:"origin"`     // of the log: audience of an intent
	Tenant  string   `json:"tenant_id"`
	User    string   `json:"user_id"`
	Session string   `json:"session_id,omitempty"`
	Turn    string   `json:"turn_id"`
	Roles   []string `json:"roles"`
}

// postGrant is POST /v1/grants: the owner of an API key gets a grant for a turn of its own, and
// one to read what the key may read. An intent under the first also needs the key of a role;
// neither grant replaces the other.
func (g *Gateway) postGrant(c *gin.Context, who caller) error {
	var body claim
	if c.Request.ContentLength != 0 {
		if err := readBody(c, &body); err != nil {
			return err
		}
	}
	a, err := g.identify(c.Request.Context(), who, body)
	if err != nil {
		return err
	}
	turn := newID("turn")
	token, expires, err := g.issueGrant(a, turn, "")
	if err != nil {
		return err
	}
	reading, err := g.issueReading(a, "")
	if err != nil {
		return err
	}
	c.JSON(http.StatusCreated, grantReply{
		Grant: token, Reading: reading, Expires: intents.FormatTime(expires), Origin: g.cfg.Origin,
		Tenant: a.tenant, User: a.user, Session: a.session, Turn: turn, Roles: a.roles,
	})
	return nil
}

// Reads lets the owner of an API key use routes that need a grant to read: router receives such a
// request with a grant that was issued for it, and every other request unchanged. The gateway's own
// reads go there, too.
func (g *Gateway) Reads(router http.Handler) http.Handler {
	g.router = router
	e := edge.NewRoutes(g.cfg.Log, "")
	e.NoRoute(e.Handle(func(c *gin.Context) error {
		a, err := g.holder(c)
		if err != nil {
			return err
		}
		c.Status(http.StatusOK) // gin has set 404, since it has no route for it
		return g.forward(c.Writer, c.Request, a, "")
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == "" || r.Header.Get("Authorization") != "" || !takesGrant(r) {
			router.ServeHTTP(w, r)
			return
		}
		e.ServeHTTP(w, r)
	})
}

// takesGrant reports whether a request reads something that needs a grant.
func takesGrant(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, consoleapi.Path) {
		return true
	}
	if r.Method != http.MethodGet {
		return false
	}
	for _, p := range []string{"/v1/intents", "/v1/approvals", "/v1/policy"} {
		if r.URL.Path == p || strings.HasPrefix(r.URL.Path, p+"/") {
			return true
		}
	}
	return false
}
