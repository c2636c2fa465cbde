package state

import (
	"slices"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// sideBySide is a plan with two running steps, each with a task.
func sideBySide() *State {
	s := New()
	p, _ := s.newPlan(Intent{Tenant: "default", User: "ana"}, catalog.PlanOpen{PlanID: "p1", Task: "both"}, nil)
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

func ofTask(step int, id string, verdict intents.Verdict) *Intent {
	return &Intent{
		Type: "skill.call", Tenant: "default", User: "ana", Signer: intents.RoleTask,
		Context:  intents.Context{PlanID: "p1", Step: step, TaskID: id},
		Decision: intents.Decision{Verdict: verdict, Effect: string(catalog.Once)},
	}
}

func checkRepeat(t *testing.T, v *View, by intents.Role, step int) {
	t.Helper()
	if err := v.CheckRepeat("default", by, "skill.call", []byte(`{}`), intents.Context{PlanID: "p1", Step: step}, true); err != nil {
		t.Fatal(err)
	}
}

// TestSiblings: one task's acting, holding or finishing leaves the decisions of another
// unchanged. After a change of the plan's state, or a transition of the plan, decisions are made
// again.
func TestSiblings(t *testing.T) {
	s := sideBySide()
	intent := s.View() // of task one, as a router's stages read
	intent.Task("default/one")
	intent.PlanInput("default", "p1")
	checkRepeat(t, intent, intents.RoleTask, 1)
	finish := func(status, key string) []storage.Subject {
		t.Helper()
		o := Intent{Type: "step.finish", Tenant: "default", User: "ana", Signer: intents.RoleTask, Context: intents.Context{TaskID: "two"}}
		o.Args = []byte(`{"task_id":"two","status":"` + status + `","memory_key":"` + key + `"}`)
		e, err := s.View().Judge(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.Writes
	}
	claim := s.View()
	if _, err := claim.Judge(Intent{Type: "plan.claim", Tenant: "default", User: "ana", Args: []byte(`{"plan_id":"p1","epoch":2}`)}, nil); err != nil {
		t.Fatal(err)
	}
	write := ofTask(2, "two", intents.Allow)
	write.Type, write.Decision.Effect = "write_memory", string(catalog.Idempotent)
	acts, done := ofTask(2, "two", intents.Allow), intents.Outcome{Status: intents.Done}
	for _, tt := range []struct {
		name   string
		writes []storage.Subject
		stale  bool
	}{
		{"acts", acts.Writes(), false},
		{"has acted", acts.OutcomeWrites(done, false), false},
		{"is held", ofTask(2, "two", intents.Hold).Writes(), false},
		{"has acted once people agreed", acts.OutcomeWrites(done, true), false},
		{"is done", finish("done", "k"), false},
		{"cannot go on", finish("insufficient", ""), true},
		{"breaks its contract", write.OutcomeWrites(intents.Outcome{Status: intents.Failed, Code: intents.ContractViolation}, false), true},
		{"acts in the same step", ofTask(1, "other", intents.Allow).Writes(), true},
	} {
		if got := slices.ContainsFunc(tt.writes, intent.HasRead); got != tt.stale {
			t.Errorf("a sibling %s: stale %t, touches %v, asserts %v", tt.name, got, tt.writes, intent.Asserts())
		}
		if !slices.ContainsFunc(tt.writes, claim.HasRead) {
			t.Errorf("a task %s: the plan is claimed without seeing it, which touches %v", tt.name, tt.writes)
		}
	}
	if writes := write.OutcomeWrites(done, false); len(writes) != 0 {
		t.Errorf("what is written touches %v", writes)
	}
}

// TestActsBesideTasks: a signer without a task, such as a manager that signs a vendor's type,
// may name any step. Its intent that acts once is decided after whatever acts in that step, and
// everything else of the plan after it: otherwise both could have the same effect.
func TestActsBesideTasks(t *testing.T) {
	s := sideBySide()
	task, other := s.View(), s.View()
	task.Task("default/two")
	task.PlanInput("default", "p1")
	checkRepeat(t, task, intents.RoleTask, 2)
	other.PlanInput("default", "p1")
	checkRepeat(t, other, intents.RoleManager, 1)

	manager := ofTask(1, "", intents.Allow)
	manager.Signer = intents.RoleManager
	for name, tt := range map[string]struct {
		reads  *View
		writes []storage.Subject
	}{
		"a task after a manager":      {task, manager.Writes()},
		"a manager after a task":      {other, ofTask(1, "one", intents.Allow).Writes()},
		"a manager after a manager":   {other, func() []storage.Subject { m := *manager; m.Context.Step = 2; return m.Writes() }()},
		"a manager after its outcome": {other, manager.OutcomeWrites(intents.Outcome{Status: intents.Done}, false)},
	} {
		if !slices.ContainsFunc(tt.writes, tt.reads.HasRead) {
			t.Errorf("%s is not stale: touches %v", name, tt.writes)
		}
	}
}
