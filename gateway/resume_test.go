package gateway

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// silentWorld is a world in which plan_1 was opened before the gateway started.
func silentWorld(t *testing.T, handed chan bus.PlanDispatch, change ...func(*Config, *pace)) *world {
	t.Helper()
	w := newWorld(t, func(h bus.PlanDispatch, _ func(bus.FrameKind, any)) { handed <- h }, change...)
	w.set(func(c *core) {
		c.plans["plan_1"] = &catalog.PlanView{
			PlanID: "plan_1", TenantID: "acme", UserID: "ana", SessionID: "s1", TurnID: "turn_1",
			Status: catalog.PlanExecuting, Task: question, Steps: []catalog.StepView{}, History: []catalog.Replan{}, CreatedAt: w.clock.Now(),
		}
	})
	w.goSilent("plan_1", 1)
	return w
}

// A plan without a driver is dispatched again under a standing grant, which is valid for nothing
// else.
func TestResume(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 9)
	w := silentWorld(t, handed, func(_ *Config, p *pace) { p.resume = time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.gateway.Run(ctx) }()
	first := wait(t, "the hand-out", handed)
	want := bus.PlanDispatch{
		TurnRef: bus.TurnRef{Tenant: "acme", UserID: "ana", SessionID: "s1", TurnID: "turn_1", PlanID: "plan_1", Grant: first.Grant},
		Driver:  first.Driver, Epoch: 1,
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	g, err := intents.OpenGrant(first.Grant, origin, w.keys(), w.clock.Now())
	if err != nil || g.For != "plan:plan_1" || g.Act.Client != "apikey:k1" || !cmp.Equal(g.Roles, []string{"user", "auditor"}) {
		t.Errorf("grant %+v, %v", g, err)
	}

	// Not again at once, although it stays silent for a moment; but again after that driver has
	// ended, with a new driver.
	w.goSilent("plan_1", 2)
	second := wait(t, "the second hand-out", handed)
	if second.Epoch != 2 || second.Driver == first.Driver {
		t.Errorf("%+v after %+v", second, first)
	}
	w.clock.advance(defaultPace.redispatch + time.Second)
	third := wait(t, "the third hand-out", handed)
	if third.Epoch != 2 || third.Driver == second.Driver {
		t.Errorf("%+v after %+v", third, second)
	}
	cancel()
	if err := wait(t, "the end of Run", ended); err != nil {
		t.Error(err)
	}
	if n := len(handed); n != 0 {
		t.Errorf("%d more hand-outs", n)
	}
}

// Users, keys and time may have changed since the plan was opened.
func TestResumeRefused(t *testing.T) {
	for name, change := range map[string]func(*world){
		"user disabled": func(w *world) {
			w.set(func(c *core) { c.users["ana"] = bus.UserReply{Disabled: true} })
		},
		"a day has passed": func(w *world) { w.clock.advance(standingLife + time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			handed := make(chan bus.PlanDispatch, 9)
			w := silentWorld(t, handed)
			change(w)
			w.gateway.resumeSilent(t.Context())
			w.stopManager()
			if n := len(handed); n != 0 {
				t.Error("handed out")
			}
		})
	}
}

func TestResumeCutsRoles(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 1)
	w := silentWorld(t, handed)
	w.set(func(c *core) { c.users["ana"] = bus.UserReply{Roles: []string{"user", "admin"}} })
	w.gateway.resumeSilent(t.Context())
	g, err := intents.OpenGrant(wait(t, "the hand-out", handed).Grant, origin, w.keys(), w.clock.Now())
	if err != nil || !cmp.Equal(g.Roles, []string{"user"}) {
		t.Errorf("roles %v, %v", g.Roles, err)
	}
}

// While a plan is open the process that runs it gets a fresh grant before the last one expires;
// another manager receives nothing.
func TestRenewGrants(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 1)
	w := silentWorld(t, handed)
	w.gateway.resumeSilent(t.Context())
	h := wait(t, "the hand-out", handed)
	other := w.conn(natsserver.Manager)
	w.serveOn(other, "manager", map[string]bus.Handler{bus.Grant("manager", other.Instance()): func(context.Context, []byte) []byte {
		t.Error("another manager gets the grant")
		return nil
	}})
	w.clock.advance(defaultPace.renew)
	w.gateway.renewGrants(t.Context())
	got := wait(t, "the grant", w.fresh)
	if got.Driver != h.Driver {
		t.Errorf("driver %q, want that of the hand-out, %q", got.Driver, h.Driver)
	}
	until := w.clock.Now().Add(intents.MaxGrantLife).Unix()
	g, err := intents.OpenGrant(got.Grant, origin, w.keys(), time.Unix(until-1, 0))
	if err != nil || g.For != "plan:plan_1" || g.Session != "s1" || g.Turn != "turn_1" || got.PlanID != "plan_1" || g.Expires != until {
		t.Errorf("%+v, %v", g, err)
	}
}

// A plan of this gateway is dispatched again when its driver has died: not while it answers.
func TestResumeLost(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 1)
	w := silentWorld(t, handed)
	w.gateway.resumeSilent(t.Context())
	wait(t, "the hand-out", handed)
	w.goSilent("plan_1", 2)
	w.set(func(c *core) {
		other := c.silent[0]
		other.PlanID = "of another gateway"
		c.silent, c.claimed = nil, append(c.silent, other)
	})
	w.clock.advance(defaultPace.redispatch + time.Second)
	w.gateway.resumeSilent(t.Context())
	if asked := wait(t, "the question", w.fresh); asked.Grant != "" || asked.Patched || asked.PlanID != "plan_1" || len(handed) != 0 {
		t.Errorf("%+v, handed out %d times", asked, len(handed))
	}
	running, _ := w.gateway.turns.find("plan_1")
	running.manager = "gone"
	w.gateway.turns.handed(running, w.clock.Now().Add(-time.Hour))
	w.gateway.resumeSilent(t.Context())
	if again := wait(t, "the hand-out", handed); again.PlanID != "plan_1" || again.Epoch != 2 {
		t.Errorf("%+v", again)
	}
	w.gateway.resumeSilent(t.Context()) // not again at once
	if len(handed) != 0 {
		t.Error("handed out twice")
	}
}

// A plan that another gateway has dispatched gets its grants from this one, too, as soon as its
// driver confirms that it has the plan. Without an answer it is dispatched again: at once if the
// driver has died, otherwise when its last grant has expired.
func TestAdopt(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 1)
	w := silentWorld(t, handed)
	w.goSilent("plan_1", 2)
	w.set(func(c *core) { c.silent, c.claimed = nil, c.silent })
	w.drivers.Store("plan_1", "its driver")
	w.gateway.resumeSilent(t.Context())
	w.gateway.renewGrants(t.Context())
	got := wait(t, "the grant", w.fresh)
	g, err := intents.OpenGrant(got.Grant, origin, w.keys(), w.clock.Now())
	if err != nil || got.Driver != "its driver" || g.For != "plan:plan_1" || !cmp.Equal(g.Roles, []string{"user", "auditor"}) {
		t.Errorf("%+v, %+v, %v", got, g, err)
	}

	died, _ := w.gateway.turns.find("plan_1")
	died.manager = "gone"
	w.gateway.turns.handed(died, time.Time{})
	w.drivers.Store("plan_1", "the next driver") // of the gateway that had it
	w.gateway.resumeSilent(t.Context())
	if next, _ := w.gateway.turns.find("plan_1"); next.driver != "the next driver" || len(handed) != 0 {
		t.Errorf("%+v, handed out %d times", next, len(handed))
	}

	w.gateway.turns.handed(died, time.Time{})
	w.drivers.Delete("plan_1")
	w.gateway.resumeSilent(t.Context())
	if again := wait(t, "the hand-out", handed); again.PlanID != "plan_1" || again.Epoch != 2 {
		t.Errorf("%+v", again)
	}

	w.gateway.turns.forget("plan_1") // as after a restart
	w.gateway.resumeSilent(t.Context())
	w.clock.advance(intents.MaxGrantLife)
	w.gateway.resumeSilent(t.Context())
	if len(handed) != 0 {
		t.Error("a plan whose driver may be held is handed out")
	}
	w.clock.advance(time.Second)
	w.gateway.resumeSilent(t.Context())
	wait(t, "the hand-out", handed)
}

// TestAllClocksAtOnce: however many plans have drivers that do not answer, their last grants are
// counted from the same moment, and all are dispatched when those have expired.
func TestAllClocksAtOnce(t *testing.T) {
	const plans = 38
	handed := make(chan bus.PlanDispatch, plans)
	w := silentWorld(t, handed)
	w.set(func(c *core) {
		one := c.silent[0]
		one.Epoch, c.silent = 2, nil
		for i := range plans {
			one.PlanID = fmt.Sprintf("plan_%d", i)
			view := *c.plans["plan_1"]
			view.PlanID = one.PlanID
			c.plans[one.PlanID] = &view
			c.claimed = append(c.claimed, one)
		}
	})
	w.gateway.resumeSilent(t.Context())
	w.clock.advance(intents.MaxGrantLife + time.Second)
	w.gateway.resumeSilent(t.Context())
	got := map[string]bool{}
	for range plans {
		got[wait(t, "a hand-out", handed).PlanID] = true
	}
	if len(got) != plans {
		t.Errorf("%d plans are handed out", len(got))
	}
}

// The driver of a patched run is notified once of each revision.
func TestPatchIsReported(t *testing.T) {
	handed := make(chan bus.PlanDispatch, 1)
	w := silentWorld(t, handed)
	w.gateway.resumeSilent(t.Context())
	h := wait(t, "the hand-out", handed)
	for _, revision := range []int{2, 2, 3} {
		w.set(func(c *core) {
			c.silent, c.patched = nil, []bus.SilentPlan{{TurnRef: bus.TurnRef{PlanID: "plan_1"}, Revision: revision}, {TurnRef: bus.TurnRef{PlanID: "of another gateway"}, Revision: revision}}
		})
		w.gateway.resumeSilent(t.Context())
	}
	for range 2 {
		if got := wait(t, "the news", w.fresh); !got.Patched || got.Grant != "" || got.Driver != h.Driver || got.PlanID != "plan_1" {
			t.Errorf("%+v", got)
		}
	}
	if n := len(w.fresh); n != 0 {
		t.Errorf("told %d times more", n)
	}
}

// Closed plans, users without the right, and plans of more than a day get none.
func TestRenewEnds(t *testing.T) {
	for name, change := range map[string]func(*world){
		"closed":        func(w *world) { w.change("plan_1", func(p *catalog.PlanView) { p.Status = catalog.PlanComplete }) },
		"user disabled": func(w *world) { w.set(func(c *core) { c.users["ana"] = bus.UserReply{Disabled: true} }) },
		"a day":         func(w *world) { w.clock.advance(standingLife + time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			handed := make(chan bus.PlanDispatch, 1)
			w := silentWorld(t, handed)
			w.gateway.resumeSilent(t.Context())
			wait(t, "the hand-out", handed)
			w.clock.advance(defaultPace.renew)
			change(w)
			w.gateway.renewGrants(t.Context())
			if _, ok := w.gateway.turns.find("plan_1"); ok {
				t.Error("still thought open")
			}
		})
	}
}
