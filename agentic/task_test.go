package agentic

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

const taskKey = "acme:sess_1:task_1:count_the_outlets"

func tasks(c *core, m model.Model) *Tasks { return NewTasks(c.config(natsserver.Task, m)) }

// ofStep returns the arguments of the step that opens task_1.
func ofStep(deadline time.Time) catalog.Step {
	return catalog.Step{PlanID: "plan_1", PlanDigest: "sha256:" + strings.Repeat("0", 64), Step: 1, Epoch: 1, TaskID: "task_1", Deadline: deadline.UTC().Format(time.RFC3339)}
}

// opened prepares task_1 and registers its key.
func opened(c *core, w *Tasks, deadline time.Time) runRequest {
	c.t.Helper()
	r := w.prepare(c.t.Context(), taskRequest{ofStep(deadline)})
	if r.Error != "" {
		c.t.Fatal(r.Error)
	}
	c.admit(r.Step)
	return runRequest{
		Turn: c.turn(), TaskID: "task_1", UserTask: "How many outlets are there?", Revision: 1,
		Step: countStep, Deadline: r.Step.Deadline,
	}
}

// working has the core answer with success throughout.
func working(c *core) {
	skillsOf(c, []string{"outlets"})
	c.on("skill.call", done(catalog.SkillCallResult{Output: json.RawMessage(`{"count":10}`)}))
	c.on("write_memory", done(catalog.WriteMemoryResult{Key: taskKey, Validated: true}))
}

// answered is the plan in the answer of a core that does not apply transitions.
var answered = &catalog.PlanView{}

// finish returns the step.finish that was signed, exactly once.
func finish(c *core) (a catalog.StepFinish) {
	c.t.Helper()
	all := c.ofType("step.finish")
	if len(all) != 1 {
		c.t.Fatalf("%d times step.finish among %v", len(all), types(c.allPlaced()))
	}
	if err := json.Unmarshal(all[0].Args, &a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

func TestPrepare(t *testing.T) {
	c := newCore(t)
	w := tasks(c, nil)
	asked := ofStep(time.Now().Add(time.Minute))
	r := w.prepare(t.Context(), taskRequest{asked})
	if r.Error != "" || r.Instance == "" || r.Instance != w.cfg.Bus.Instance() {
		t.Fatalf("%+v", r)
	}
	step, pop := r.Step, r.Step.PoP
	step.PoP = ""
	key, err := step.JWK.ToKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := intents.VerifyPoP(pop, key, step); err != nil {
		t.Error(err)
	}
	changed := step
	changed.Step = 2
	if err := intents.VerifyPoP(pop, key, changed); err == nil {
		t.Error("the proof is good for another step")
	}
	step.JWK = intents.JWK{}
	if d := cmp.Diff(asked, step); d != "" {
		t.Errorf("the arguments were changed (-want +got):\n%s", d)
	}
	s, err := schemas.IntentArgs("step")
	if err != nil {
		t.Fatal(err)
	}
	if v := s.ValidateBytes(marshal(r.Step)); len(v) > 0 {
		t.Errorf("no step could be signed with it: %v", v)
	}
	other := tasks(c, nil).prepare(t.Context(), taskRequest{asked})
	if other.Step.JWK.KID == r.Step.JWK.KID || other.Instance == r.Instance {
		t.Error("two tasks have one key or one place")
	}
}

func TestTask(t *testing.T) {
	c := newCore(t)
	working(c)
	m := says(map[string][]any{agents.Executor: {callIt, finishIt}})
	w := tasks(c, m)
	got := w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute)))
	if d := cmp.Diff(runReply{Status: taskDone, Plan: answered}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(catalog.StepFinish{TaskID: "task_1", Status: taskDone, MemoryKey: taskKey, Usage: []catalog.Usage{used(agents.Executor, 2)}}, finish(c)); d != "" {
		t.Errorf("step.finish (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"skill.load", "skill.call", "write_memory", "step.finish"}, types(c.allPlaced())); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
	for _, o := range c.allPlaced() {
		if o.Role != intents.RoleTask || o.Place != (Place{Revision: 1, Step: 1, TaskID: "task_1"}) || o.Grant != "first" {
			t.Errorf("%+v", o)
		}
	}
	var wrote catalog.WriteMemory
	if err := json.Unmarshal(c.ofType("write_memory")[0].Args, &wrote); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(catalog.WriteMemory{Label: "count_the_outlets", From: c.ofType("skill.call")[0].ID}, wrote); d != "" {
		t.Errorf("write_memory (-want +got):\n%s", d)
	}
}

// TestTaskKeyForgotten: a key is valid for one run, however that ends, and a task that was never
// prepared here has none.
func TestTaskKeyForgotten(t *testing.T) {
	c := newCore(t)
	working(c)
	w := tasks(c, says(map[string][]any{agents.Executor: {giveUp}}))
	req := opened(c, w, time.Now().Add(time.Minute))
	if got := w.run(t.Context(), req); got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	total := len(c.allPlaced())
	for _, id := range []string{"task_1", "task_2", ""} {
		req.TaskID = id
		got := w.run(t.Context(), req)
		if d := cmp.Diff(runReply{Status: taskFailed, Reason: "the task's key is not here"}, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", id, d)
		}
	}
	if len(w.keys) != 0 || len(c.allPlaced()) != total {
		t.Errorf("%d keys are kept, %d intents were signed", len(w.keys), len(c.allPlaced())-total)
	}
}

// TestTaskNeverRun: if the step is refused the task never runs. Its key is dropped at its
// deadline.
func TestTaskNeverRun(t *testing.T) {
	c := newCore(t)
	cfg := c.config(natsserver.Task, nil)
	now := time.Now()
	cfg.Now = func() time.Time { return now }
	w := NewTasks(cfg)
	for i, id := range []string{"task_1", "task_2", "task_3"} {
		step := ofStep(now.Add(time.Minute))
		step.TaskID = id
		if r := w.prepare(t.Context(), taskRequest{step}); r.Error != "" {
			t.Fatal(r.Error)
		}
		if i == 1 {
			now = now.Add(2 * time.Minute)
		}
	}
	if _, kept := w.keys["task_3"]; !kept || len(w.keys) != 1 {
		t.Errorf("%d keys are kept, the last one: %t", len(w.keys), kept)
	}
}

func TestTaskDeadline(t *testing.T) {
	c := newCore(t)
	working(c)
	slow := func(ctx context.Context) error {
		<-ctx.Done()
		return &model.Error{Reason: "cut off", Err: ctx.Err()}
	}
	w := tasks(c, says(map[string][]any{agents.Executor: {slow}}))
	got := w.run(t.Context(), opened(c, w, time.Now().Add(2*time.Second)))
	if d := cmp.Diff(runReply{Status: taskFailed, Reason: "the step was not done by its deadline", Plan: answered, TimedOut: true}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, bad := range []string{"", "tomorrow"} {
		req := opened(c, w, time.Now().Add(time.Minute))
		req.Deadline = bad
		if got := w.run(t.Context(), req); got.Status != taskFailed || got.Plan != nil || len(w.keys) != 0 {
			t.Errorf("deadline %q: %+v", bad, got)
		}
		step := ofStep(time.Now())
		step.Deadline = bad
		if r := w.prepare(t.Context(), taskRequest{step}); r.Error == "" {
			t.Errorf("deadline %q: a key was made", bad)
		}
	}
}

// TestTaskEnds: how a step can end other than done.
func TestTaskEnds(t *testing.T) {
	held := func(p placed) *intents.Answer {
		a := refuse(intents.ApprovalRequired, "two people must agree")(p)
		a.Decision = &intents.Decision{Approvers: []string{"bob"}, PolicyIDs: []string{"a.b"}}
		return a
	}
	tests := []struct {
		name    string
		answers map[string]func(placed) *intents.Answer
		actions []any
		want    runReply
		finish  *catalog.StepFinish
	}{
		{"insufficient", nil, []any{giveUp}, runReply{Status: taskInsufficient, Reason: "no such outlets", Plan: answered}, &catalog.StepFinish{Reason: "no such outlets", Suggestion: "ask for others"}},
		{
			"a skill that is too slow",
			map[string]func(placed) *intents.Answer{"skill.call": outcome(intents.ExecutorTimeout, intents.Failed, false)},
			[]any{callIt, giveUp},
			runReply{Status: taskInsufficient, Reason: "no such outlets", Plan: answered},
			&catalog.StepFinish{Reason: "no such outlets", Suggestion: "ask for others", Cause: catalog.SkillTimeout},
		},
		{
			"a model that only talks", nil,
			[]any{"I will count them."},
			runReply{Status: taskInsufficient, Reason: "the model did not use its tools", Plan: answered},
			&catalog.StepFinish{Reason: "the model did not use its tools", Suggestion: "split the step, or use another skill"},
		},
		{"nothing to finish with", nil, []any{finishIt}, runReply{
			Status: taskInsufficient, Reason: `no result is what return_spec asks for: no result has a label yet, so none is "r1"`, Plan: answered,
		}, &catalog.StepFinish{Reason: `no result is what return_spec asks for: no result has a label yet, so none is "r1"`, Suggestion: "ask for less, or for another shape"}},
		{"held", map[string]func(placed) *intents.Answer{"skill.call": held}, []any{callIt}, runReply{
			Status: taskPendingApproval, Plan: answered, Reply: "Waiting for approval (1):\n- outlets {\"active\":true}",
			Approval: &bus.Approval{Type: "skill.call", Approvers: []string{"bob"}, PolicyIDs: []string{"a.b"}, Reason: "two people must agree"},
		}, &catalog.StepFinish{Reply: "Waiting for approval (1):\n- outlets {\"active\":true}"}},
		{
			"contract violation",
			map[string]func(placed) *intents.Answer{"write_memory": outcome(intents.ContractViolation, intents.Failed, false)},
			[]any{callIt, finishIt},
			runReply{Status: taskViolation, Reason: "it did not work"},
			nil,
		},
		{
			"a manifest that is refused",
			map[string]func(placed) *intents.Answer{"skill.load": refuse(intents.PolicyDenied, "not approved")},
			nil,
			runReply{Status: taskFailed, Reason: "not approved (skill.load)", Plan: answered},
			&catalog.StepFinish{Reason: "not approved (skill.load)"},
		},
		{"a model that is down", nil, []any{&model.Error{Reason: "rate limit"}}, runReply{Status: taskFailed, Reason: "the model could not answer: rate limit", Plan: answered}, &catalog.StepFinish{Reason: "the model could not answer: rate limit"}},
		{
			"its own end refused",
			map[string]func(placed) *intents.Answer{"step.finish": refuse(intents.KeyRevoked, "cancelled")},
			[]any{giveUp},
			runReply{Status: taskInsufficient, Reason: "no such outlets"},
			&catalog.StepFinish{Reason: "no such outlets", Suggestion: "ask for others"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCore(t)
			working(c)
			for typ, fn := range tt.answers {
				c.on(typ, fn)
			}
			w := tasks(c, says(map[string][]any{agents.Executor: tt.actions}))
			got := w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute)))
			if got.Approval != nil {
				if got.Approval.IntentID != c.ofType("skill.call")[0].ID {
					t.Error("the held intent is not named")
				}
				got.Approval.IntentID, got.Refused = "", nil
			}
			if reports := got.Plan == nil; reports != (len(got.Usage) > 0) { // usage that no intent reports
				t.Errorf("usage %+v", got.Usage)
			}
			got.Usage = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if tt.finish == nil {
				if n := len(c.ofType("step.finish")); n != 0 {
					t.Errorf("step.finish was signed %d times", n)
				}
				return
			}
			tt.finish.TaskID, tt.finish.Status = "task_1", tt.want.Status
			if tt.want.Status == taskInsufficient {
				tt.finish.Completed = json.RawMessage("null")
			}
			ended := finish(c)
			ended.Usage = nil // checked by TestTask
			if d := cmp.Diff(*tt.finish, ended); d != "" {
				t.Errorf("step.finish (-want +got):\n%s", d)
			}
		})
	}
}
