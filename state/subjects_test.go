package state

import (
	"slices"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// sideBySide is a plan of which two steps run, each with a task.
func sideBySide() *State {
	s := New()
	p, _ := s.newPlan(Order{Tenant: "default", User: "ana"}, catalog.PlanOpen{PlanID: "p1", Task: "both"})
	p.View.Status, p.View.Epoch = catalog.PlanExecuting, 1
	for n := 1; n <= 2; n++ {
		t := &task{Task: Task{ID: []string{"", "one", "two"}[n], Tenant: "default", User: "ana", Plan: "p1", Step: n}, plan: p}
		p.View.Steps = append(p.View.Steps, catalog.StepView{PlanStep: catalog.PlanStep{Step: n}, Status: catalog.StepRunning, TaskID: t.ID})
		p.Tasks, s.tasks["default/"+t.ID] = append(p.Tasks, t), t
		p.Results[n] = []string{"k"}
	}
	s.plans["default/p1"] = p
	return s
}

func ofTask(step int, id string, verdict intents.Verdict) *Order {
	return &Order{
		Type: "skill.call", Tenant: "default", User: "ana", Signer: intents.RoleTask,
		Context:  intents.Context{PlanID: "p1", Step: step, TaskID: id},
		Decision: intents.Decision{Verdict: verdict, Effect: string(catalog.Once)},
	}
}

// TestSiblings: what one task of a plan does leaves the decisions of another as they
// are, whether it acts, is held or is done. What changes the plan's state, and every
// move of the plan, is decided again.
func TestSiblings(t *testing.T) {
	s := sideBySide()
	order := s.View() // of task one, as the stages of a router read
	order.Task("default/one")
	order.PlanFacts("default", "p1")
	order.Repeats("default", "p1", 1, intents.RoleTask, "skill.call", []byte(`{}`))
	finish := func(status, key string) []storage.Subject {
		t.Helper()
		o := Order{Type: "step.finish", Tenant: "default", User: "ana", Signer: intents.RoleTask, Context: intents.Context{TaskID: "two"}}
		o.Args = []byte(`{"task_id":"two","status":"` + status + `","memory_key":"` + key + `"}`)
		e, err := s.View().Judge(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.Touches
	}
	claim := s.View()
	if _, err := claim.Judge(Order{Type: "plan.claim", Tenant: "default", User: "ana", Args: []byte(`{"plan_id":"p1","epoch":2}`)}, nil); err != nil {
		t.Fatal(err)
	}
	write := ofTask(2, "two", intents.Allow)
	write.Type, write.Decision.Effect = "write_memory", string(catalog.Idempotent)
	acts, done := ofTask(2, "two", intents.Allow), intents.Outcome{Status: intents.Done}
	for _, tt := range []struct {
		name    string
		touches []storage.Subject
		stale   bool
	}{
		{"acts", acts.Touches(), false},
		{"has acted", acts.OutcomeTouches(done, false), false},
		{"is held", ofTask(2, "two", intents.Hold).Touches(), false},
		{"has acted once people agreed", acts.OutcomeTouches(done, true), false},
		{"is done", finish("done", "k"), false},
		{"cannot go on", finish("insufficient", ""), true},
		{"breaks its contract", write.OutcomeTouches(intents.Outcome{Status: intents.Failed, Code: intents.ContractViolation}, false), true},
		{"acts in the same step", ofTask(1, "other", intents.Allow).Touches(), true},
	} {
		if got := slices.ContainsFunc(tt.touches, order.Relies); got != tt.stale {
			t.Errorf("a sibling %s: stale %t, touches %v, asserts %v", tt.name, got, tt.touches, order.Asserts())
		}
		if !slices.ContainsFunc(tt.touches, claim.Relies) {
			t.Errorf("a task %s: the plan is claimed without seeing it, which touches %v", tt.name, tt.touches)
		}
	}
	if touches := write.OutcomeTouches(done, false); len(touches) != 0 {
		t.Errorf("what is written touches %v", touches)
	}
}

// TestActsBesideTasks: who is no task, such as a manager that seals a vendor's type,
// names what step it likes. What acts once so and what a task does are decided after
// each other, whatever the steps: else both could have the same effect.
func TestActsBesideTasks(t *testing.T) {
	s := sideBySide()
	task, other := s.View(), s.View()
	task.Task("default/two")
	task.PlanFacts("default", "p1")
	task.Repeats("default", "p1", 2, intents.RoleTask, "x.acme.pay", []byte(`{}`))
	other.PlanFacts("default", "p1")
	other.Repeats("default", "p1", 1, intents.RoleManager, "x.acme.pay", []byte(`{}`))

	manager := ofTask(1, "", intents.Allow)
	manager.Signer = intents.RoleManager
	for name, tt := range map[string]struct {
		relies  *View
		touches []storage.Subject
	}{
		"a task after a manager":      {task, manager.Touches()},
		"a manager after a task":      {other, ofTask(2, "two", intents.Allow).Touches()},
		"a manager after a manager":   {other, func() []storage.Subject { m := *manager; m.Context.Step = 2; return m.Touches() }()},
		"a manager after its outcome": {other, manager.OutcomeTouches(intents.Outcome{Status: intents.Done}, false)},
	} {
		if !slices.ContainsFunc(tt.touches, tt.relies.Relies) {
			t.Errorf("%s is not stale: touches %v", name, tt.touches)
		}
	}
}
