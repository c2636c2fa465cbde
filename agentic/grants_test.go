package agentic

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
)

// A grant for another plan or driver, a message without a grant, or one that arrives after the
// end of the work changes nothing.
func TestRenewalsTakeTheirOwn(t *testing.T) {
	turn := theTurn
	turn.Driver = "d1"
	r, s := newRenewals(), &Submitter{}
	ctx, stop := r.follow(t.Context(), turn, s, nil)
	for name, g := range map[string]bus.FreshGrant{
		"another plan":   {PlanID: "plan_2", Driver: "d1", Grant: "x"},
		"another driver": {PlanID: turn.PlanID, Driver: "d2", Grant: "x"},
		"no driver":      {PlanID: turn.PlanID, Grant: "x"},
	} {
		if r.take(t.Context(), g).Accepted || s.grantOf(turn) != turn.Grant {
			t.Errorf("%s: taken", name)
		}
	}
	// Without a grant it is a question.
	if !r.take(t.Context(), bus.FreshGrant{PlanID: turn.PlanID, Driver: "d1"}).Accepted || s.grantOf(turn) != turn.Grant {
		t.Error("nobody drives the plan, or its grant is another one")
	}
	if ctx.Err() != nil {
		t.Error("stopped by a question")
	}
	own := bus.FreshGrant{PlanID: turn.PlanID, Driver: "d1", Grant: "fresh"}
	if !r.take(t.Context(), own).Accepted || s.grantOf(turn) != "fresh" {
		t.Error("its own is not taken")
	}
	stop()
	if r.take(t.Context(), own).Accepted {
		t.Error("taken although nobody works any more")
	}
}

// A fresh grant goes from the gateway to the manager that runs the turn, and from there to the
// planner or task that works for it: their next intents carry it.
func TestFreshGrantReachesHelpers(t *testing.T) {
	for name, at := range map[string]struct {
		during, then string
		role         intents.Role
	}{
		"planner": {"skill.find", "plan", intents.RolePlanner},
		"task":    {"skill.call", "write_memory", intents.RoleTask},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			managed(c)
			m := wellDone()
			planner, tasks, mgr := NewPlanner(c.config(natsserver.Planner, m)), NewTasks(c.config(natsserver.Task, m)), NewManager(c.config(natsserver.Manager, m))
			c.serve(natsserver.Planner, ignoring(planner.Serve))
			c.serve(natsserver.Task, ignoring(tasks.Serve))
			c.serve(natsserver.Manager, ignoring(mgr.Serve))
			helper := map[intents.Role]*renewals{intents.RolePlanner: planner.grants, intents.RoleTask: tasks.grants}[at.role]
			gateway := c.connect(natsserver.Gateway)
			fresh := c.grant("fresh")
			before := c.reply[at.during]
			c.on(at.during, func(p placed) *intents.Answer {
				raw, err := gateway.Request(t.Context(), bus.Grant("manager", mgr.cfg.Bus.Instance()), marshal(bus.FreshGrant{PlanID: theTurn.PlanID, Driver: "d1", Grant: fresh}))
				var reply bus.FreshGrantReply
				if err != nil || json.Unmarshal(raw, &reply) != nil || !reply.Accepted {
					t.Errorf("the manager: %s, %v", raw, err)
				}
				for until := time.Now().Add(patience); !helper.has(fresh); runtime.Gosched() {
					if time.Now().After(until) {
						t.Error("the helper gets none")
						break
					}
				}
				return before(p)
			})
			dispatchTurn(c)
			shown(c)
			for typ, want := range map[string]string{at.during: "first", at.then: "fresh"} {
				if got := c.ofType(typ); len(got) != 1 || got[0].Role != at.role || got[0].Grant != want {
					t.Errorf("%s: %+v, want one under the grant %q", typ, got, want)
				}
			}
		})
	}
}

// has reports whether an active submitter has a grant.
func (r *renewals) has(grant string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.bearers {
		if s.grantOf(Turn{}) == grant {
			return true
		}
	}
	return false
}
