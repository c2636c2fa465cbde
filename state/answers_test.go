package state_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestAnswers: every transition of a plan returns the plan as it is after it is applied, valid
// against its schema. Only plan.claim returns texts.
func TestAnswers(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("pay", catalog.Once)
	seen := make(map[string]bool)
	transition := func(p *routertest.Plan, typ string, a *intents.Answer) {
		t.Helper()
		w.Want(a, intents.OK)
		seen[typ] = true
		row, _ := w.Catalog.Lookup(typ)
		s, err := row.ResultSchema()
		w.Must(err)
		if wrong := s.ValidateBytes(a.Outcome.Result); len(wrong) > 0 {
			t.Errorf("%s: %v", typ, wrong)
		}
		var got catalog.PlanView
		if typ == "step" {
			got = routertest.Result[catalog.StepResult](w, a).Plan
		} else {
			got = routertest.Result[catalog.PlanView](w, a)
		}
		want := p.View()
		if typ != "plan.claim" {
			want.Task, want.Response = "", ""
			for i := range want.IntentHistory {
				want.IntentHistory[i].Args = json.RawMessage(`{}`)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-folded +answered):\n%s", typ, d)
		}
	}
	open := func(id string) *routertest.Plan {
		p := w.NewPlan(id)
		transition(p, "plan.open", p.Open())
		transition(p, "plan.claim", p.Claim())
		return p
	}
	step := func(p *routertest.Plan, n int) *routertest.Task {
		task := p.NewTask(n)
		transition(p, "step", p.Do(p.StepIntent(task.StepArgs())))
		w.Clock.Move(time.Second)
		return task
	}

	p := open("p1")
	transition(p, "plan", p.Plan(routertest.Steps(1, "pay", "pay")))
	task := step(p, 1)
	w.Want(task.Call("pay", `{"n":1}`), intents.OK)
	transition(p, "step.finish", task.Finish("insufficient", "", "too little"))
	transition(p, "plan", p.Plan(routertest.Steps(3, "pay", "pay")))
	task = step(p, 3)
	w.Want(task.Call("pay", `{"n":2}`), intents.OK)
	transition(p, "plan.claim", p.Claim()) // interrupts the step after an intent with an effect
	if v := p.View(); v.ReplanCount != 1 || len(v.IntentHistory) != 2 {
		t.Errorf("nothing to tell: %+v", v)
	}
	for n := range 2 {
		task = step(p, n+3)
		w.Want(task.Write("result"), intents.OK)
		transition(p, "step.finish", task.Finish("done", task.MemoryKey("result"), ""))
	}
	transition(p, "plan.close", p.Complete())

	p = open("p2")
	transition(p, "plan", p.Plan(routertest.Steps(1, "pay")))
	step(p, 1)
	transition(p, "cancel", p.Cancel(p.Gateway)) // while a step runs
	p = open("p3")
	transition(p, "plan.close", p.Fail())

	for _, r := range w.Catalog.Rows() {
		if r.Executor == catalog.ExecutorRouter && strings.HasPrefix(r.Capability, "plans:") && r.Type != "agent.get" && r.Type != "node.skip" && r.Type != "usage.report" && !seen[r.Type] {
			t.Errorf("%s: not shown here", r.Type)
		}
	}
}
