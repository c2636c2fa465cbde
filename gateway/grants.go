package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
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

// act says how the user was identified: by an API key, or by the key of an operator who started a
// run.
func (a actor) act() intents.Act {
	if a.keyID == "" {
		return intents.Act{Client: "operator", AMR: []string{"operator_key"}}
	}
	return intents.Act{Client: intents.ClientOfKey(a.keyID), AMR: []string{"api_key"}}
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
	if closed(view) {
		g.turns.forget(t.plan)
		return nil
	}
	if t.manager == "" {
		return nil // nobody has accepted it yet: the driver gets a grant with the dispatch
	}
	token, expires, err := g.issueGrant(t.actor, t.id, t.plan)
	if err != nil {
		return err
	}
	fresh := bus.FreshGrant{PlanID: t.plan, Driver: t.driver, Grant: token, Expires: expires}
	// A manager that no longer runs it, because it waits for people, needs none.
	if _, err := ask[bus.FreshGrantReply](ctx, g.cfg.Bus, bus.Grant(t.role(), t.manager), fresh); err != nil {
		return err
	}
	g.turns.grantIssued(t.plan, g.cfg.Now())
	return nil
}

// closed reports whether a plan has ended.
func closed(v catalog.PlanView) bool {
	return v.Status == catalog.PlanComplete || v.Status == catalog.PlanFailed
}
