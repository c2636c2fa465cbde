package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// standingLife is how long after its opening a plan may go on without its user.
const standingLife = 24 * time.Hour

// newID returns a fresh identifier: 26 letters and digits after its kind.
func newID(kind string) string { return kind + "_" + strings.ToLower(rand.Text()) }

// issueGrant signs a statement about the user of one turn. A standing grant names the plan that
// goes on without the user and is valid for nothing else.
func (g *Gateway) issueGrant(a actor, turnID, standing string) (string, time.Time, error) {
	gr := g.grantOf(a, intents.MaxGrantLife)
	gr.Session, gr.Turn = a.session, turnID
	if standing != "" {
		gr.For = "plan:" + standing
	}
	token, err := intents.IssueGrant(g.cfg.Key, gr)
	return token, time.Unix(gr.Expires, 0), err
}

// issueReading signs a grant for reading: the only bearer of a read, and valid for no intent. With a
// plan, it reads that plan and nothing else.
func (g *Gateway) issueReading(a actor, plan string) (string, error) {
	gr := g.grantOf(a, intents.MaxReadGrantLife)
	gr.Use = intents.UseRead
	if plan != "" {
		gr.For = "plan:" + plan
	}
	return intents.IssueGrant(g.cfg.Key, gr)
}

// grantOf is a grant of an actor, valid from now on.
func (g *Gateway) grantOf(a actor, life time.Duration) intents.Grant {
	now := g.cfg.Now()
	return intents.Grant{
		Issuer: g.cfg.Origin, Audience: g.cfg.Origin,
		Subject: a.user, Tenant: a.tenant, Roles: a.roles, Act: a.act(),
		IssuedAt: now.Unix(), Expires: now.Add(life).Unix(), ID: newID("grant"),
	}
}

// act says how the user was identified: by an API key, by an access token, or by the key of an
// operator who started a run.
func (a actor) act() intents.Act {
	if a.keyID == "" {
		return intents.Act{Client: "operator", AMR: []string{"operator_key"}}
	}
	amr := "api_key"
	if intents.IsCallerByToken(a.keyID) {
		amr = "access_token"
	}
	return intents.Act{Client: intents.ClientOf(a.keyID), AMR: []string{amr}}
}

// renewGrants sends the driver of every plan of this gateway a fresh grant when its last one is
// due for renewal, and drops closed plans.
func (g *Gateway) renewGrants(ctx context.Context) {
	for _, t := range g.turns.grantedBefore(g.cfg.Now().Add(-g.pace.renew)) {
		if err := g.renewGrant(ctx, t); err != nil && ctx.Err() == nil {
			g.cfg.Log.WarnContext(ctx, "renew grant", slog.String("plan_id", t.plan), slog.String("trace_id", t.trace), slog.String("error", err.Error()))
		}
	}
}

func (g *Gateway) renewGrant(ctx context.Context, t turn) error {
	if g.cfg.Now().Sub(t.opened) > cmp.Or(t.life, standingLife) {
		g.turns.forget(t.plan) // the user has to come back
		return nil
	}
	var err error
	if t.roles, err = g.rolesOf(ctx, t.actor, t.roles); err != nil {
		if problem.FromError(err).Code == intents.RBACForbidden {
			g.turns.forget(t.plan) // its last grant expires, and then it stops
		}
		return err
	}
	view, err := g.viewPlan(ctx, t.actor, t.plan)
	if err != nil {
		return err
	}
	if view.Status.Ended() {
		g.turns.forget(t.plan)
		return nil
	}
	if t.manager == "" {
		return nil // nobody has accepted it yet: the driver gets a grant with the dispatch
	}
	token, _, err := g.issueGrant(t.actor, t.id, t.plan)
	if err != nil {
		return err
	}
	fresh := bus.FreshGrant{PlanID: t.plan, Driver: t.driver, Grant: token}
	// A manager that no longer runs it, because it waits for people, needs none.
	if _, err := ask[bus.FreshGrantReply](ctx, g.cfg.Bus, bus.Grant(t.role(), t.manager), fresh); err != nil {
		return err
	}
	g.turns.grantIssued(t.plan, g.cfg.Now())
	return nil
}

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
// request with a grant that was issued for it, as does somebody with an access token, and every other request unchanged. The gateway's own
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
	return g.shared(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !takesGrant(r) || !g.people(r) && (r.Header.Get("X-Api-Key") == "" || r.Header.Get("Authorization") != "") {
			router.ServeHTTP(w, r)
			return
		}
		e.ServeHTTP(w, r)
	}))
}

// people reports whether a request carries an access token of somebody: one of an issuer that the
// settings name. A grant for reading has none.
func (g *Gateway) people(r *http.Request) bool {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return bearer && r.Header.Get("X-Api-Key") == "" && g.cfg.People.Names(token)
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
