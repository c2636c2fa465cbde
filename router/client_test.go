package router_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
)

// clientWorld has three skills, of which the API key allows the named ones.
func clientWorld(t *testing.T, tools ...string) *routertest.World {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	w.Pin("bank.pay", catalog.Once)
	w.Pin("bank.rates", catalog.Pure)
	w.Pin("mail.send", catalog.Once)
	w.Data("approval", `{"once":false}`)
	w.ClientKey(tools...)
	return w
}

// TestClientNumbers: equal calls under different numbers are different calls, whatever their
// effect, and a resubmitted one is the same. A number serves one call.
func TestClientNumbers(t *testing.T) {
	w := clientWorld(t)
	task := w.BegunClient("p1")
	pay := task.Numbered(1, "bank.pay", `{"n":1}`)
	first := w.Want(w.Do(pay), intents.OK)
	if again := w.Want(w.Do(pay), intents.OK); !again.Replayed || again.IntentID != first.IntentID {
		t.Errorf("sent again: %+v", again)
	}
	w.Want(w.Do(task.Numbered(7, "bank.pay", `{"n":1}`)), intents.OK)
	w.Want(w.Do(task.Numbered(2, "bank.rates", `{}`)), intents.OK)
	w.Want(w.Do(task.Numbered(3, "bank.rates", `{}`)), intents.OK)
	if calls := len(w.Bus.Calls("skill.call")); calls != 4 {
		t.Errorf("%d calls at the server", calls)
	}
	for n, skill := range map[int]string{1: "bank.rates", 2: "bank.pay", 3: "mail.send", 7: "bank.pay"} {
		a := w.Want(w.Do(task.Numbered(n, skill, `{"other":true}`)), intents.ConflictIdempotency)
		if a.Pointer != "/context/occurrence" {
			t.Errorf("%d: %+v", n, a)
		}
	}
	w.Want(w.Do(task.CallIntent("bank.rates", `{}`)), intents.MalformedArgs)
	w.Want(w.Do(task.Numbered(catalog.MaxClientCalls+1, "bank.rates", `{}`)), intents.MalformedArgs)
	w.Want(w.Do(task.Numbered(catalog.MaxClientCalls, "bank.rates", `{}`)), intents.OK)
	task.Plan = task.On(w.Restart())
	task.Want(task.Do(task.Numbered(2, "bank.rates", `{"other":true}`)), intents.ConflictIdempotency)
	task.Want(task.Do(task.Numbered(4, "bank.rates", `{}`)), intents.OK)
}

// TestClientNumberIsFreed: a call that had no effect may be sent again under its number.
func TestClientNumberIsFreed(t *testing.T) {
	w := clientWorld(t)
	task := w.BegunClient("p1")
	usual := w.Bus.Executor("skill.call")
	w.Bus.On("skill.call", routertest.Always(intents.Report{Status: intents.Failed, Code: intents.Overloaded, Reason: "busy", Retryable: true}))
	call := task.Numbered(1, "bank.rates", `{}`)
	w.Want(w.Do(call), intents.Overloaded)
	w.Bus.On("skill.call", usual)
	if a := w.Want(w.Do(call), intents.OK); a.Replayed {
		t.Errorf("%+v", a)
	}
}

// TestClientCallsSideBySide: once calls do not make each other stale.
func TestClientCallsSideBySide(t *testing.T) {
	w := clientWorld(t)
	task := w.BegunClient("p1")
	var raws [][]byte
	for n := range 100 {
		raws = append(raws, w.Sign(task.Numbered(n+1, "bank.pay", `{"n":1}`)))
	}
	var all sync.WaitGroup
	for _, raw := range raws {
		all.Go(func() {
			if a := w.Send(raw); a.Code != intents.OK {
				t.Errorf("%s: %s", a.Code, a.Reason)
			}
		})
	}
	all.Wait()
	if calls := len(w.Bus.Calls("skill.call")); calls != len(raws) {
		t.Errorf("%d calls at the server", calls)
	}
}

// TestClientScope: the task of a client may call, find, load and read, and nothing else, each under
// a grant that was issued for a call of its API key.
func TestClientScope(t *testing.T) {
	w := clientWorld(t, "bank.pay", "mail.*", "gone.tool")
	task := w.BegunClient("p1")
	view := task.View()
	if !cmp.Equal(view.Steps[0].Skills, []string{"bank.pay", "mail.send"}) {
		t.Errorf("skills %v", view.Steps[0].Skills)
	}
	w.Want(w.Do(task.Numbered(1, "bank.rates", `{}`)), intents.TaskScope)
	w.Want(w.Do(task.Numbered(1, "mail.send", `{}`)), intents.OK)
	w.OK(task.Intent("skill.find", catalog.SkillFind{Query: "pay"}))
	w.OK(task.Intent("skill.load", catalog.SkillLoad{Skill: "bank.pay"}))
	w.OK(task.Intent("read_lines", catalog.ReadLines{FileID: "f_1", N: 1}))
	w.Want(w.Do(task.Intent("exec_python", catalog.ExecPython{Script: "1"})), intents.TaskScope)
	w.Want(w.Do(task.Intent("agent.get", catalog.AgentGet{})), intents.TaskScope)
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: task.ID, Step: 1}}), intents.MalformedArgs)
	for name, change := range map[string]func(*intents.Grant){
		"standing":       func(g *intents.Grant) { g.For = "plan:" + task.ID },
		"of no key":      func(g *intents.Grant) { g.Act.Client = "test" },
		"of another key": func(g *intents.Grant) { g.Act.Client = intents.ClientOf("k2") },
	} {
		o := task.Numbered(2, "mail.send", `{}`)
		o.Grant = change
		if a := w.Want(w.Do(o), intents.TaskScope); a.Pointer != "/actor/grant" {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// TestClientOpen: the intents that may and may not open the plan of a client.
func TestClientOpen(t *testing.T) {
	w := clientWorld(t)
	open := func(code intents.Code, pointer string, change func(*routertest.Intent, *catalog.PlanOpen)) {
		t.Helper()
		p := w.NewPlan("refused")
		o := p.OpenClientIntent()
		a := o.Args.(catalog.PlanOpen)
		change(&o, &a)
		o.Args = a
		if got := w.Want(w.Do(o), code); got.Pointer != pointer {
			t.Errorf("%+v", got)
		}
	}
	open(intents.MalformedArgs, "/intent/args/api_key", func(_ *routertest.Intent, a *catalog.PlanOpen) { a.APIKey = "" })
	open(intents.MalformedArgs, "/intent/args/api_key", func(_ *routertest.Intent, a *catalog.PlanOpen) { a.Agent = "general" })
	open(intents.TaskScope, "/actor/grant", func(_ *routertest.Intent, a *catalog.PlanOpen) { a.APIKey = "k2" })
	open(intents.MalformedArgs, "/intent/args/schedule", func(_ *routertest.Intent, a *catalog.PlanOpen) {
		a.Schedule = &catalog.Firing{ID: "s", Due: w.Clock.Now()}
	})
	open(intents.TaskScope, "/actor/grant", func(o *routertest.Intent, _ *catalog.PlanOpen) {
		o.Grant = func(g *intents.Grant) { g.For = "plan:" + o.Ctx.PlanID }
	})
	open(intents.RBACForbidden, "/actor", func(o *routertest.Intent, _ *catalog.PlanOpen) { o.Roles = []string{"auditor"} })
	if slices.Contains(w.Dir.AgentsOf("default"), agents.Client) {
		t.Error("a request may name the agent client")
	}
}

// TestClientPlanEnds: the plan of a client takes no session and no driver. It is ready to be ended
// once its task has ended, or was opened before the router began, and no call is pending.
func TestClientPlanEnds(t *testing.T) {
	w := clientWorld(t)
	apiKey(w, "ben")
	user(w, "ben", "approver")
	w.Approval(`{"once":true}`, "ben")
	left := func(want int) {
		t.Helper()
		if got := w.Dir.AbandonedPlans(0, w.Clock.Now()); len(got) != want {
			t.Errorf("%d plans are left, not %d", len(got), want)
		}
		if silent := w.Dir.Silent(1 << 40); len(silent) > 0 {
			t.Errorf("handed out: %+v", silent)
		}
	}
	task := w.BegunClient("p1")
	other := w.NewPlan("p2")
	o := other.OpenIntent()
	o.Ctx.SessionID = routertest.SessionOf(task.ID)
	w.Want(w.Do(o), intents.OK) // a turn of a chat of this name
	w.Want(other.Cancel(w.Gateway), intents.OK)
	held := w.Want(w.Do(task.Numbered(1, "bank.pay", `{"n":1}`)), intents.ApprovalRequired)
	w.Want(w.Do(task.Numbered(2, "bank.rates", `{}`)), intents.OK) // it continues
	left(0)
	w.Want(task.Reply("2 calls"), intents.OK)
	left(0)
	yes := routertest.Intent{Grant: func(g *intents.Grant) { g.Act.Client = intents.ClientOf("ben") }, By: w.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove}}
	w.OK(yes)
	if a, err := w.Router.Await(t.Context(), *held.Position); err != nil || a.Code != intents.OK {
		t.Fatalf("%+v, %v", a, err)
	}
	left(1)
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "plan.close", Args: catalog.PlanClose{PlanID: task.ID, Epoch: 1, Status: "complete", Response: "2 calls"}, Ctx: intents.Context{PlanID: task.ID}}), intents.OK)
	left(0)
	if v := task.View(); v.Status != catalog.PlanComplete || len(v.Usage) > 0 {
		t.Errorf("%+v", v)
	}
	late := w.BegunClient("p3")
	left(0)
	if got := w.Dir.AbandonedPlans(w.Dir.Next(), w.Clock.Now()); len(got) != 1 {
		t.Errorf("after a restart: %+v", got)
	}
	w.Clock.Move(10 * time.Minute) // the task's deadline
	left(1)
	w.Want(late.Cancel(w.Gateway), intents.OK)
	p := w.NewPlan("p4")
	w.Want(p.Do(p.OpenClientIntent()), intents.OK)
	left(0)
	w.Clock.Move(time.Minute)
	left(1) // nobody has claimed it
}

// TestClientUnknownOutcome: while the outcome of a call is unknown, later calls of its skill wait,
// and others do not.
func TestClientUnknownOutcome(t *testing.T) {
	w := clientWorld(t)
	task := w.BegunClient("p1")
	usual := w.Bus.Executor("skill.call")
	w.Bus.On("skill.call", cutOff)
	first := w.Want(w.Do(task.Numbered(1, "bank.pay", `{"n":1}`)), intents.Indeterminate)
	w.Bus.On("skill.call", usual)
	held := w.Want(w.Do(task.Numbered(2, "bank.pay", `{"n":2}`)), intents.ApprovalRequired)
	w.Want(w.Do(task.Numbered(3, "mail.send", `{}`)), intents.OK)
	w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: first.IntentID, Status: "failed", Reason: "seen at the other end"}), intents.OK)
	w.Must(w.Router.ReleaseReady(t.Context()))
	if a, err := w.Router.Await(t.Context(), *held.Position); err != nil || a.Code != intents.OK {
		t.Errorf("%+v, %v", a, err)
	}
	w.Want(w.Do(task.Numbered(4, "bank.pay", `{"n":3}`)), intents.OK)
}

// TestClientErased: the permissions of a plan follow from its records even after the intent that
// opened it was erased, with its grant.
func TestClientErased(t *testing.T) {
	w := clientWorld(t, "bank.*")
	task := w.BegunClient("p1")
	call := w.Want(w.Do(task.Numbered(1, "bank.pay", `{"name":"anas-name"}`)), intents.OK)
	w.Want(task.Cancel(w.Gateway), intents.OK)
	opened := *call
	opened.IntentID, opened.Position = task.Digest, new(int64)
	for _, r := range w.Records() {
		if o, err := state.ReadIntent(r); err == nil && o.Type == "plan.open" {
			*opened.Position = r.Position
		}
	}
	for _, a := range []*intents.Answer{call, &opened} {
		w.Want(erase(w, a, catalog.ErasesEnvelope), intents.OK)
	}
	before := task.View()
	task.Plan = task.On(w.Restart())
	if d := cmp.Diff(before, task.View()); d != "" || !cmp.Equal(before.Steps[0].Skills, []string{"bank.pay", "bank.rates"}) {
		t.Errorf("%s\n%+v", d, before.Steps[0])
	}
}

// TestClientIsNoTurn: the calls of a client do not count for dreams.
func TestClientIsNoTurn(t *testing.T) {
	w := clientWorld(t)
	for n := range 20 {
		p := w.NewPlan(fmt.Sprint("p", n))
		o := p.OpenClientIntent()
		o.Ctx.SessionID = "mcp"
		w.Want(w.Do(o), intents.OK)
		w.Want(p.Cancel(w.Gateway), intents.OK)
	}
	if due := w.Dir.Undreamt(); len(due) > 0 {
		t.Errorf("%+v", due)
	}
}
