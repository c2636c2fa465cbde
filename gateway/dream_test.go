package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// TestDream: a due session gets one dream after a turn, in the session and under a standing grant
// of the remaining roles. A user who may not run the agent gets none.
func TestDream(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 9)
	w := newWorld(t, func(h bus.PlanDispatch, _ func(bus.FrameKind, any)) { handed <- h })
	due := bus.SilentPlan{
		TurnRef: bus.TurnRef{Tenant: "acme", UserID: "ana", PlanID: "plan_9", SessionID: "s1", TurnID: "turn_9", TraceID: "0123456789abcdef0123456789abcdef"},
		Roles:   []string{"user", "auditor"}, Client: intents.ClientOf("k1"), OpenedAt: w.clock.Now(),
	}
	w.set(func(c *core) {
		c.dreams = []bus.SilentPlan{due}
		c.users["ana"] = bus.UserReply{Roles: []string{"user", "admin"}}
		c.mayNot = "agents:run:dreaming-agent"
	})
	w.gateway.resumeSilent(t.Context())
	w.set(func(c *core) { c.mayNot, c.dreams[0].PlanID = "", "plan_10" })
	w.gateway.resumeSilent(t.Context())
	w.gateway.resumeSilent(t.Context())
	opened := w.submits("plan.open")
	if len(opened) != 1 {
		t.Fatalf("%d plans", len(opened))
	}
	e := opened[0]
	if e.StringArg("agent") != "dreaming-agent" || e.Principal().UserID != "ana" || e.Context().SessionID != "s1" || e.Context().TurnID == "turn_9" || e.TraceID() != due.TraceID {
		t.Errorf("%s in %+v", e.Args(), e.Context())
	}
	if g := e.Grant(); g.For != "plan:"+e.StringArg("plan_id") || !cmp.Equal(g.Roles, []string{"user"}) {
		t.Errorf("%+v", g)
	}
	if h := wait(t, "the hand-out", handed); h.PlanID != e.StringArg("plan_id") || e.StringArg("task") != dreamTask {
		t.Errorf("%+v", h)
	}
	w.clock.advance(standingLife + 1)
	w.set(func(c *core) { c.dreams[0].PlanID = "plan_11" })
	w.gateway.resumeSilent(t.Context())
	if n := len(w.submits("plan.open")); n != 1 {
		t.Errorf("%d plans, a day later", n)
	}
}
