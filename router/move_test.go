package router_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// elsewhere is the origin of another log.
const elsewhere = "writ/elsewhere"

func moves(w *routertest.World, tenant, origin string) *intents.Answer {
	return w.Admin("admin.put", catalog.AdminPut{Tenant: tenant, Moved: &catalog.Moved{Origin: origin}})
}

// movedAway is a refusal that names the log that the tenant has left for.
func movedAway(w *routertest.World, a *intents.Answer) {
	w.Helper()
	if w.Want(a, intents.MalformedArgs); !strings.Contains(a.Reason, elsewhere) {
		w.Errorf("%+v", a)
	}
}

// TestMovedTenant: of a tenant that has left what is open ends, and nothing begins. What was
// answered before is answered again. It may stay after all.
func TestMovedTenant(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	schedule := func(id string) routertest.Order {
		return routertest.Order{By: w.Gateway, Type: "schedule.put", Args: catalog.SchedulePut{ID: id, Input: "Sell.", Cron: "0 * * * *"}}
	}
	w.OK(schedule("before"))
	opened := w.NewPlan("p0").OpenOrder()
	w.OK(opened)
	p := w.NewPlan("p1")
	request := &catalog.Request{Digest: intents.Digest([]byte("which")), Kind: catalog.RequestKey}
	first := p.OpenOrder()
	first.Args = catalog.PlanOpen{PlanID: p.ID, Task: "Which ten?", Request: request}
	w.OK(first)
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Plan(routertest.Steps(1, "feed")), intents.OK)
	task := p.Started(1)
	w.Want(moves(w, "default", w.Dir.Origin()), intents.MalformedArgs)
	w.Want(moves(w, "system", elsewhere), intents.MalformedArgs)
	w.Want(moves(w, "default", elsewhere), intents.OK)
	w.Clock.Move(2 * time.Hour)
	if due := w.Dir.Due(w.Clock.Now()); len(due) > 0 {
		t.Errorf("due: %+v", due)
	}
	w.Clock.Move(-2 * time.Hour)

	w.OK(opened)
	asked := w.NewPlan("p9").OpenOrder()
	asked.Args = catalog.PlanOpen{PlanID: w.NewPlan("p9").ID, Task: "Which ten?", Request: request}
	if a := w.Want(w.Do(asked), intents.SessionBusy); a.PlanID != p.ID {
		t.Errorf("the plan of the request: %+v", a)
	}
	for _, o := range []routertest.Order{
		w.NewPlan("p2").OpenOrder(), schedule("later"),
		{By: w.Gateway, Type: "session.create", Args: catalog.SessionCreate{SessionID: "s9"}},
		{By: w.Operator, Type: "registry.push", Args: w.RegistryOf("default", 1, map[string]string{"agents/shop.yaml": "name: shop\ndescription: d\ninstructions: i\n"})},
		{By: w.Operator, Type: "skill.approve", Args: catalog.SkillApprove{Tenant: "default", Skill: "pay", Digest: intents.Digest(nil), Effect: catalog.Once}},
		{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "zoe", Roles: []string{"user"}}}},
	} {
		movedAway(w, w.Do(o))
	}
	w.OK(routertest.Order{By: w.Gateway, Type: "schedule.list", Args: struct{}{}})
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "zoe", Roles: []string{}, Disabled: true}}), intents.OK)
	if work := w.Dir.Work("default"); work.Drained() || len(work.Plans) != 2 || len(work.Schedules) != 1 {
		t.Errorf("open: %+v", work)
	}
	w.OK(p.CancelOrder(w.Gateway))
	w.Want(task.Call("feed", "{}"), intents.KeyRevoked)
	other := w.NewPlan("p0")
	w.OK(other.CancelOrder(w.Gateway))
	if work := w.Dir.Work("default"); !work.Drained() {
		t.Errorf("open: %+v", work)
	}

	w.Want(moves(w, "default", ""), intents.OK)
	w.OK(w.NewPlan("p3").OpenOrder())
	w.OK(schedule("later"))
}

// TestArriving: a tenant that comes begins with nothing, and nothing until it has arrived.
func TestArriving(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	came := func(at int64) *intents.Answer {
		return w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme", Came: &catalog.Came{Origin: elsewhere, Position: at, Record: intents.Digest(nil), Receipt: "x"}}})
	}
	arrived := func() *intents.Answer {
		return w.Admin("admin.put", catalog.AdminPut{Tenant: "acme", Arrived: &struct{}{}})
	}
	w.Want(came(7), intents.OK)
	if rows, _ := w.Dir.Rows("acme"); len(rows.Roles)+len(rows.Data) > 0 || rows.Place.Came.Position != 7 {
		t.Errorf("%+v", rows)
	}
	w.Want(came(9), intents.OK) // the first one was taken back there
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "acme", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*"}}}), intents.OK)
	p := w.NewPlan("p1")
	p.Tenant = "acme"
	movedAway(w, p.Open())
	w.Want(moves(w, "acme", "writ/third"), intents.MalformedArgs)
	w.Want(arrived(), intents.OK)
	again := p.OpenOrder()
	again.Key = "again"
	w.OK(again)
	w.Want(arrived(), intents.MalformedArgs)
	w.Want(came(11), intents.MalformedArgs)
	if rows, _ := w.Dir.Rows("acme"); rows.Place.Came.Position != 9 || !rows.Place.Arrived {
		t.Errorf("%+v", rows.Place)
	}
	w.Restart()
}

// TestMovedForGood: once nothing of a tenant that has left is open, random orders, legal and not,
// open nothing again.
func TestMovedForGood(t *testing.T) {
	for seed := range uint64(15) {
		w := routertest.New(t, routertest.Options{})
		w.Pin("feed", catalog.Pure)
		w.Pin("pay", catalog.Once)
		w.Approval(`{"once":true}`, "ben")
		k := w.BeginWalk("p1", rand.New(rand.NewPCG(seed, 1)))
		play := func(n int, drained bool) {
			for range n {
				o := k.Move()
				if k.Rand.IntN(4) == 0 {
					o = others(w, k)
				}
				a := w.Do(o)
				if a.Code == intents.OK && o.Type == "step" {
					k.Opened()
				}
				if a.Code == intents.OK && !a.Replayed && drained {
					t.Errorf("seed %d: %s is done", seed, o.Type)
				}
				if v := k.View(); v.Epoch > 0 {
					k.Epoch, k.Revision, k.Digest = v.Epoch, v.Revision, v.PlanDigest
				}
			}
		}
		play(k.Rand.IntN(40), false)
		w.Want(moves(w, "default", elsewhere), intents.OK)
		play(k.Rand.IntN(20), false)
		for _, p := range w.Dir.Work("default").Plans {
			c := w.NewPlan("x")
			c.ID = p
			w.Do(c.CancelOrder(w.Gateway))
		}
		if work := w.Dir.Work("default"); !work.Drained() {
			t.Fatalf("seed %d: open: %+v", seed, work)
		}
		play(60, true)
		if work := w.Dir.Work("default"); !work.Drained() {
			t.Errorf("seed %d: open again: %+v", seed, work)
		}
	}
}

// others are orders that begin something, or belong to no plan.
func others(w *routertest.World, k *routertest.Walk) routertest.Order {
	id := fmt.Sprint("q", k.Rand.IntN(50))
	switch k.Rand.IntN(5) {
	case 0:
		return w.NewPlan(id).OpenOrder()
	case 1:
		return routertest.Order{By: w.Gateway, Type: "schedule.put", Args: catalog.SchedulePut{ID: id, Input: "Sell.", Cron: "0 * * * *"}}
	case 2:
		return routertest.Order{By: w.Gateway, Type: "session.create", Args: catalog.SessionCreate{SessionID: id}}
	case 3:
		return routertest.Order{By: w.Gateway, Type: "read_memory", Args: catalog.ReadMemory{Key: "default:S:t:" + id}, Ctx: intents.Context{PlanID: []string{"", k.ID}[k.Rand.IntN(2)]}}
	default:
		return k.CancelOrder(w.Gateway)
	}
}

// TestMovesByEarlierRules: a log under earlier rules lets nobody leave or come.
func TestMovesByEarlierRules(t *testing.T) {
	w := routertest.NewOld(t, routertest.Options{})
	w.Want(moves(w, "default", elsewhere), intents.MalformedArgs)
	w.Must(w.Router.Start(t.Context()))
	w.Want(moves(w, "default", elsewhere), intents.OK)
}
