package router_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// besides is plan.open in the session of the first plan.
func besides(p *routertest.Plan) routertest.Intent {
	o := p.OpenIntent()
	o.Ctx.SessionID = routertest.Session
	return o
}

// TestOneOpenTurn: a session has one open turn, and a refusal of another names it; its end frees
// the session, and so does a hold.
func TestOneOpenTurn(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	first := w.NewPlan("p1")
	w.Want(first.Open(), intents.OK)
	a := w.Want(w.Do(besides(w.NewPlan("p2"))), intents.SessionBusy)
	if a.PlanID != first.ID || a.Pointer != "/context/session_id" || a.Decision == nil || a.Decision.Verdict != intents.Deny {
		t.Errorf("%+v", a)
	}
	other := w.NewPlan("p3")
	other.User = "ben"
	w.Want(w.Do(besides(other)), intents.OK)
	w.Want(first.Cancel(w.Gateway), intents.OK)
	second := w.NewPlan("p4")
	w.Want(w.Do(besides(second)), intents.OK)
	w = w.Reopen()
	w.Want(w.Do(besides(w.NewPlan("p5"))), intents.SessionBusy)
	w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: intents.FormatTime(w.Clock.Now())}), intents.OK)
	w.Clock.Move(time.Minute)
	w.Want(w.Do(besides(w.NewPlan("p6"))), intents.OK)
}

// TestHoldFreesItsSession: a held turn lets the next one begin, and takes no session when it
// continues.
func TestHoldFreesItsSession(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("pay", catalog.Once)
	w.Approval(`{"once":true}`, "ben")
	p := w.Begun("p1", "pay")
	w.Want(w.Do(besides(w.NewPlan("p2"))), intents.SessionBusy)
	task := p.Started(1)
	w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)
	w.Want(task.Finish("held", "", ""), intents.OK)
	next := w.NewPlan("p3")
	w.Want(w.Do(besides(next)), intents.OK)
	w.Want(p.Claim(), intents.OK) // it continues
	w.Want(p.Fail(), intents.OK)
	w.Want(w.Do(besides(w.NewPlan("p4"))), intents.SessionBusy)
}

// TestOneRequest: a request opens one plan. How long a repetition gets that plan depends on how it
// is recognised.
func TestOneRequest(t *testing.T) {
	for kind, kept := range map[string]time.Duration{catalog.RequestKey: 24*time.Hour - 5*time.Second, catalog.RequestRetry: 10 * time.Minute, catalog.RequestBody: 0} {
		t.Run(kind, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			asks := func(p *routertest.Plan, of string) routertest.Intent {
				o := p.OpenIntent()
				o.Args = catalog.PlanOpen{PlanID: p.ID, Task: "Which ten?", Request: &catalog.Request{Digest: intents.Digest([]byte(of)), Kind: kind}}
				return o
			}
			first := w.NewPlan("p1")
			w.Want(w.Do(asks(first, "x")), intents.OK)
			w.Want(w.Do(asks(w.NewPlan("p2"), "y")), intents.OK)
			if a := w.Want(w.Do(asks(w.NewPlan("p3"), "x")), intents.SessionBusy); a.PlanID != first.ID || a.Pointer != "/intent/args/request" {
				t.Errorf("while it is open: %+v", a)
			}
			other := w.NewPlan("p4")
			other.User = "ben"
			w.Want(w.Do(asks(other, "x")), intents.OK)
			w.Clock.Move(5 * time.Second)
			w.Want(first.Claim(), intents.OK)
			w.Want(first.Fail(), intents.OK)
			if kept > 0 {
				w.Clock.Move(kept - time.Millisecond)
				w = w.Reopen()
				w.Want(w.Do(asks(w.NewPlan("p5"), "x")), intents.SessionBusy)
				w.Clock.Move(time.Millisecond)
			}
			again := w.NewPlan("p6")
			w.Want(w.Do(asks(again, "x")), intents.OK)
			w.Want(again.Cancel(w.Gateway), intents.OK) // nobody took it
			again = w.NewPlan("p8")
			w.Want(w.Do(asks(again, "x")), intents.OK)
			if a := w.Want(w.Do(asks(w.NewPlan("p7"), "x")), intents.SessionBusy); a.PlanID != again.ID {
				t.Errorf("the last one is meant: %+v", a)
			}
		})
	}
}

// TestTurnContext: the claimer of a plan gets what its prompts take from the request; no other
// answer has it, nor what is erased later.
func TestTurnContext(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	turn := &catalog.TurnContext{History: []catalog.ChatMessage{{Role: "user", Content: "Hello"}}, Locale: "de"}
	o := p.OpenIntent()
	o.Args = catalog.PlanOpen{PlanID: p.ID, Task: "Which ten?", Turn: turn}
	told := func(a *intents.Answer) *catalog.TurnContext {
		var v catalog.PlanView
		w.Must(json.Unmarshal(a.Outcome.Result, &v))
		return v.Turn
	}
	if got := told(w.Want(w.Do(o), intents.OK)); got != nil {
		t.Errorf("plan.open tells %+v", got)
	}
	p = p.On(w.Reopen())
	if d := cmp.Diff(turn, told(p.Want(p.Claim(), intents.OK))); d != "" {
		t.Error(d)
	}
	if got := told(p.Want(p.Fail(), intents.OK)); got != nil {
		t.Errorf("plan.close tells %+v", got)
	}
}
