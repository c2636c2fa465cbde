package agentic

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestReplan: a step that reports insufficient is replanned, and the planner learns why.
func TestReplan(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := wellDone()
	m.replies[agents.Executor] = []any{giveUp, callIt, finishIt}
	layer(c, m, allRoles...)
	dispatchTurn(c)
	want := []string{"planning", "executing", "step_started", "step_failed", "replanning", "executing", "step_started", "calling", "step_done", "token", "answer", "done"}
	if d := cmp.Diff(want, kinds(t, shown(c))); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	in, _ := block[soFar](t, m.requests(agents.Planner)[2], "Plan")
	if f := in.Failed; f == nil || f.Trigger != "insufficient" || f.Reason != "no such outlets" || f.Suggestion != "ask for others" || f.Step.Step != 1 {
		t.Errorf("the planner was told %+v", f)
	}
	var second catalog.Step
	if err := json.Unmarshal(c.ofType("step")[1].Args, &second); err != nil || second.PlanDigest != c.ofType("plan")[1].ID {
		t.Errorf("the second task is of plan %s, error %v", second.PlanDigest, err)
	}
	if finished := c.ofType("step.finish"); len(finished) != 2 || finished[0].Place.Revision != 1 || finished[1].Place.Revision != 2 {
		t.Errorf("%+v", finished)
	}
}

// TestViolation: a result that breaks its contract ends the step without a transition. The
// manager reads the state of the plan and has it revised.
func TestViolation(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("write_memory", inTurn(outcome(intents.ContractViolation, intents.Failed, false), done(catalog.WriteMemoryResult{Key: taskKey, Validated: true})))
	m := wellDone()
	m.replies[agents.Executor] = []any{callIt, finishIt, callIt, finishIt}
	layer(c, m, allRoles...)
	dispatchTurn(c)
	want := []string{"planning", "executing", "step_started", "calling", "step_failed", "replanning", "executing", "step_started", "calling", "step_done", "token", "answer", "done"}
	if d := cmp.Diff(want, kinds(t, shown(c))); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	in, _ := block[soFar](t, m.requests(agents.Planner)[2], "Plan")
	if f := in.Failed; f == nil || f.Trigger != "contract_violation" || f.Reason != "it did not work" {
		t.Errorf("the planner was told %+v", f)
	}
	if reads := c.ofType("plan.get"); len(reads) != 1 || reads[0].Role != intents.RoleManager || len(c.ofType("step.finish")) != 1 {
		t.Errorf("intents %v", types(c.allPlaced()))
	}
}

// TestInterrupted: the planner learns what earlier tasks may have done, with the arguments, which
// no record of a transition has.
func TestInterrupted(t *testing.T) {
	c := newCore(t)
	managed(c)
	args := json.RawMessage(`{"skill":"outlets","input":{"close":7}}`)
	answerTransitions(c, catalog.PlanView{
		PlanID: "plan_1", Status: catalog.PlanReplanning, Task: "x", Epoch: 1, Revision: 1, ReplanCount: 1,
		Steps:         []catalog.StepView{{PlanStep: countStep, Status: catalog.StepInterrupted, Revision: 1}},
		History:       []catalog.Replan{{Attempt: 1, Trigger: "interrupted", FailedStep: 1}},
		IntentHistory: []catalog.PastIntent{{Step: 1, Revision: 1, IntentID: ofStep(time.Now()).PlanDigest, Type: "skill.call", Effect: catalog.Once, Args: args, Status: "done"}},
	})
	m := wellDone()
	m.replies[agents.Executor] = []any{giveUp, callIt, finishIt}
	layer(c, m, allRoles...)
	dispatchTurn(c)
	shown(c)
	for i, req := range m.requests(agents.Planner) {
		in, _ := block[soFar](t, req, "Plan")
		if in.Failed == nil || !strings.Contains(string(marshal(in.Failed.IntentHistory)), `"close":7`) {
			t.Errorf("request %d of the planner: %+v", i, in)
		}
	}
}

// TestReplanExhausted: after the fourth failure the plan is closed.
func TestReplanExhausted(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := wellDone()
	m.replies[agents.Executor] = []any{giveUp}
	layer(c, m, allRoles...)
	dispatchTurn(c)
	shown(c)
	want := catalog.PlanClose{PlanID: "plan_1", Epoch: 1, Status: "failed", Failure: &catalog.Failure{
		Reason:         "max replan attempts reached",
		CompletedSteps: []int{}, LastFailure: &catalog.LastFailure{Step: 4, Reason: "no such outlets"},
	}, Usage: []catalog.Usage{used(agents.Composer, 1)}}
	if d := cmp.Diff(want, closed(c)); d != "" {
		t.Errorf("plan.close (-want +got):\n%s", d)
	}
	if n := len(c.ofType("plan")); n != catalog.MaxReplans+1 {
		t.Errorf("%d plans were written", n)
	}
}

// TestInfeasible: the planner's refusal reaches the user in words.
func TestInfeasible(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := wellDone()
	m.replies[agents.Planner] = []any{call("plan", planArgs{Infeasible: "nothing knows outlets"})}
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if got := closed(c); got.Failure == nil || got.Failure.Reason != "infeasible: nothing knows outlets" || got.Status != "failed" {
		t.Errorf("%+v", got)
	}
	if e := dataOf[bus.ErrorData](t, frames[len(frames)-2]); e.Reason != "nothing knows outlets" || len(m.requests(agents.Composer)) > 0 {
		t.Errorf("shown %q", e.Reason)
	}
}

// TestAsksUser: the planner's question is the answer, and the plan ends as one that needs input.
func TestAsksUser(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := wellDone()
	m.replies[agents.Planner] = []any{call("plan", planArgs{Ask: "Which Ana, of Oslo or of Bergen?"})}
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	want := catalog.PlanClose{PlanID: "plan_1", Epoch: 1, Status: "needs_input", Response: "Which Ana, of Oslo or of Bergen?", Usage: []catalog.Usage{used(agents.Planner, 1)}}
	if d := cmp.Diff(want, closed(c)); d != "" {
		t.Errorf("plan.close (-want +got):\n%s", d)
	}
	end := dataOf[bus.DoneData](t, frames[len(frames)-1])
	if a := dataOf[bus.AnswerData](t, frames[len(frames)-2]); a.Response != want.Response || end.Status != "needs_input" {
		t.Errorf("shown %q, %s", a.Response, end.Status)
	}
	var kept catalog.SessionAppend
	if err := json.Unmarshal(c.ofType("session.append")[0].Args, &kept); err != nil || len(kept.Turns) != 2 || kept.Turns[1].Content != want.Response {
		t.Errorf("the session has %+v, error %v", kept.Turns, err)
	}
}

// TestHeld: the turn's stream ends, the plan does not: it waits for approval.
func TestHeld(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("skill.call", func(p placed) *intents.Answer {
		a := refuse(intents.ApprovalRequired, "two people must agree")(p)
		a.Decision = &intents.Decision{Approvers: []string{"bob"}, PolicyIDs: []string{"a.b"}}
		return a
	})
	c.on("plan.get", done(catalog.PlanGetResult{Plan: catalog.PlanView{
		PlanID: "plan_1", Status: catalog.PlanExecuting, Steps: []catalog.StepView{{PlanStep: countStep, Status: catalog.StepPendingApproval, Revision: 1}},
	}}))
	layer(c, wellDone(), allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	want := bus.PendingApprovalData{PlanID: "plan_1", Text: "This waits for approval: two people must agree\n\nWaiting for approval (1):\n- outlets {\"active\":true}", Approval: bus.Approval{
		IntentID: c.ofType("skill.call")[0].ID, Type: "skill.call", Step: 1, Approvers: []string{"bob"},
		PolicyIDs: []string{"a.b"}, Reason: "two people must agree",
	}}
	if d := cmp.Diff(want, dataOf[bus.PendingApprovalData](t, frames[len(frames)-1])); d != "" {
		t.Errorf("held (-want +got):\n%s", d)
	}
	told := map[string][]string{"turn:" + theTurn.TurnID + ":held": {"user: How many outlets are there?", "agent: This waits for approval: two people must agree\n\nWaiting for approval (1):\n- outlets {\"active\":true}"}}
	if d := cmp.Diff(told, appended(c)); d != "" {
		t.Errorf("session.append (-want +got):\n%s", d)
	}
	if got := types(c.allPlaced()); slices.Contains(got, "plan.close") || !slices.Contains(got, "step.finish") {
		t.Errorf("intents %v", got)
	}
}

// TestNotBegun: who reads that a plan waits is told of the steps that nobody has begun.
func TestNotBegun(t *testing.T) {
	t.Parallel()
	var r Run
	for _, status := range []catalog.StepStatus{catalog.StepDone, catalog.StepPendingApproval, catalog.StepPending, catalog.StepPending} {
		step := countStep
		step.Step = len(r.plan.Steps) + 1
		step.Task = fmt.Sprint("do ", step.Step)
		r.plan.Steps = append(r.plan.Steps, catalog.StepView{PlanStep: step, Status: status})
	}
	if got, want := r.notBegun(), "\n\nNot begun (2):\n- do 3\n- do 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if r.plan.Steps = r.plan.Steps[:2]; r.notBegun() != "" {
		t.Errorf("%q, and all are begun", r.notBegun())
	}
}

// TestHeldHint: an intent that asks nobody is shown with what ends its wait.
func TestHeldHint(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("skill.call", func(p placed) *intents.Answer {
		a := refuse(intents.ApprovalRequired, "nobody knows")(p)
		a.Decision = &intents.Decision{PolicyIDs: []string{intents.RuleUnknownOutcome}, Hint: "look"}
		return a
	})
	c.on("plan.get", done(catalog.PlanGetResult{Plan: catalog.PlanView{
		PlanID: "plan_1", Status: catalog.PlanExecuting, Steps: []catalog.StepView{{PlanStep: countStep, Status: catalog.StepPendingApproval, Revision: 1}},
	}}))
	m := wellDone()
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if got := dataOf[bus.PendingApprovalData](t, frames[len(frames)-1]); got.Text != "This waits: nobody knows\n\nWaiting for approval (1):\n- outlets {\"active\":true}" || got.Approval.Hint != "look" {
		t.Errorf("%+v", got)
	}
	if n := len(m.requests(agents.Executor)); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestTaskSilent: a task that cannot report its own end has failed, and only the manager can
// record that.
func TestTaskSilent(t *testing.T) {
	c := newCore(t)
	managed(c)
	// It creates a key and never listens on its subject.
	w := NewTasks(c.config(natsserver.Task, nil))
	c.serve(natsserver.Task, func(ctx context.Context, conn bus.Conn, ready chan<- struct{}) error {
		return conn.Serve(ctx, bus.Service{
			Name: bus.ServiceName(natsserver.Task), Version: "1.0.0", Queue: "task",
			Endpoints: map[string]bus.Handler{bus.Agent("task"): answer(w.cfg.Log, w.prepare)},
		}, ready)
	})
	m := wellDone()
	m.replies[agents.Planner] = []any{pick, onePlan, call("plan", planArgs{Infeasible: "no task runs"})}
	layer(c, m, natsserver.Planner, natsserver.Manager)
	dispatchTurn(c)
	want := []string{"planning", "executing", "step_started", "step_failed", "replanning", "error", "done"}
	if d := cmp.Diff(want, kinds(t, shown(c))); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	finished := c.ofType("step.finish")
	if len(finished) != 1 || finished[0].Role != intents.RoleManager {
		t.Fatalf("%+v", finished)
	}
	var args catalog.StepFinish
	if err := json.Unmarshal(finished[0].Args, &args); err != nil || args.Status != taskFailed || args.Reason != "the task does not answer" {
		t.Errorf("%+v, error %v", args, err)
	}
}

// TestEndUndelivered: a task has ended its step, and the answer was lost. The manager reads it
// from the record, and the plan continues.
func TestEndUndelivered(t *testing.T) {
	c := newCore(t)
	managed(c)
	taskEnds := 0
	c.on("step.finish", func(p placed) *intents.Answer {
		if p.Role == intents.RoleTask {
			taskEnds++
			return refuse(intents.InFlight, "nobody knows yet")(p)
		}
		return refuse(intents.KeyRevoked, "the task has ended")(p)
	})
	c.on("plan.get", done(catalog.PlanGetResult{Plan: catalog.PlanView{
		PlanID: "plan_1", Epoch: 1, Status: catalog.PlanExecuting, Steps: []catalog.StepView{{PlanStep: countStep, Status: catalog.StepDone, Revision: 1, MemoryKey: taskKey}},
	}}))
	layer(c, wellDone(), allRoles...)
	dispatchTurn(c)
	got := kinds(t, shown(c))
	if taskEnds == 0 || !slices.Contains(got, "step_done") || slices.Contains(got, "step_failed") || !slices.Contains(got, "answer") {
		t.Errorf("%d ends, frames %v", taskEnds, got)
	}
}

// TestGoOn: a plan begun by an earlier driver. Completed steps stay and are read; the step that
// waits for people is left alone.
func TestGoOn(t *testing.T) {
	steps := []catalog.StepView{
		{PlanStep: catalog.PlanStep{Step: 1, Task: "list", Skills: []string{"outlets"}, ReturnSpec: catalog.ReturnSpec{Shape: "array<{name: string}>"}}, Status: catalog.StepDone, Revision: 1, MemoryKey: taskKey},
		{PlanStep: catalog.PlanStep{Step: 2, Task: "count", Skills: []string{"outlets"}, InputFromStep: 1, ReturnSpec: catalog.ReturnSpec{Shape: "{count: integer}"}}, Status: catalog.StepPendingApproval, Revision: 1},
	}
	view := catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanExecuting, Task: "x", Epoch: 1, Revision: 1, PlanDigest: ofStep(time.Now()).PlanDigest, Steps: steps}
	c := newCore(t)
	managed(c)
	answerTransitions(c, view)
	cfg := c.config(natsserver.Manager, wellDone())
	turn := c.turn()
	h := bus.PlanDispatch{TurnRef: turn.TurnRef, Driver: "d2", Epoch: 1}
	NewManager(cfg).run(t.Context(), h)
	if d := cmp.Diff([]string{"plan.claim", "soul.get", "session.get", "read_memory"}, types(c.allPlaced())); d != "" {
		t.Errorf("a held plan (-want +got):\n%s", d)
	}

	steps[1].Status = catalog.StepPending
	answerTransitions(c, view)
	layer(c, wellDone(), natsserver.Task)
	NewManager(cfg).run(t.Context(), h)
	var claimed catalog.PlanClaim
	var opened catalog.Step
	if err := json.Unmarshal(c.ofType("plan.claim")[1].Args, &claimed); err != nil || claimed.Epoch != 2 || claimed.Driver != "d2" {
		t.Errorf("%+v, error %v", claimed, err)
	}
	all := c.ofType("step")
	if len(all) != 1 {
		t.Fatalf("%d steps were opened", len(all))
	}
	if err := json.Unmarshal(all[0].Args, &opened); err != nil || opened.Step != 2 || opened.Epoch != 2 || opened.PlanDigest != view.PlanDigest {
		t.Errorf("%+v, error %v", opened, err)
	}
	if got := closed(c); got.Status != "complete" || got.Epoch != 2 {
		t.Errorf("%+v", got)
	}
}

// TestGoOnWithAnswer: an earlier driver died between the planner's answer and the close.
func TestGoOnWithAnswer(t *testing.T) {
	c := newCore(t)
	managed(c)
	answerTransitions(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanExecuting, Task: "Hello", Epoch: 1, Revision: 1, Response: "Hello, Ana.", Steps: []catalog.StepView{}})
	turn := c.turn()
	NewManager(c.config(natsserver.Manager, says(nil))).run(t.Context(), bus.PlanDispatch{
		TurnRef: turn.TurnRef, Driver: "d2", Epoch: 1,
	})
	if got := closed(c); got.Status != "complete" || got.Response != "Hello, Ana." || got.Epoch != 2 {
		t.Errorf("%+v", got)
	}
}

// TestManagerStops: a manager that is stopped ends silently; the plan continues after a restart.
func TestManagerStops(t *testing.T) {
	c := newCore(t)
	managed(c)
	ctx, cancel := context.WithCancel(t.Context())
	c.on("soul.get", func(p placed) *intents.Answer {
		cancel()
		return refuse(intents.NotFound, "no soul")(p)
	})
	turn := c.turn()
	NewManager(c.config(natsserver.Manager, wellDone())).run(ctx, bus.PlanDispatch{
		TurnRef: turn.TurnRef, Driver: "d1",
	})
	if d := cmp.Diff([]string{"plan.claim", "soul.get"}, types(c.allPlaced())); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
}

// TestNobodyApproves: a call that was denied because nobody could approve it ends the plan: no other
// plan is written, and the user is told of the call. Any other denial is planned again.
func TestNobodyApproves(t *testing.T) {
	for name, tt := range map[string]struct {
		decision intents.Decision
		planned  int
	}{
		"by the tenant's data": {intents.Decision{Verdict: intents.Deny, PolicyIDs: []string{intents.RuleNobody, "x"}}, 1},
		"by any rule":          {intents.Decision{Verdict: intents.Deny, PolicyIDs: []string{"x"}, Reason: intents.TooFewApprove + "money"}, 1},
		"another denial":       {intents.Decision{Verdict: intents.Deny, PolicyIDs: []string{"x"}, Reason: "no"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			managed(c)
			denied := func(placed) *intents.Answer {
				return &intents.Answer{Code: intents.PolicyDenied, Reason: "too few may approve", Decision: &tt.decision}
			}
			c.on("skill.call", inTurn(denied, c.reply["skill.call"]))
			m := wellDone()
			m.replies[agents.Executor] = []any{callIt, giveUp, callIt, finishIt}
			layer(c, m, allRoles...)
			dispatchTurn(c)
			frames := shown(c)
			if n := len(c.ofType("plan")); n != tt.planned {
				t.Fatalf("%d plans, not %d", n, tt.planned)
			}
			var end catalog.StepFinish
			if err := json.Unmarshal(c.ofType("step.finish")[0].Args, &end); err != nil || (end.Cause == catalog.NeedsApprovers) != (tt.planned == 1) {
				t.Errorf("%+v, error %v", end, err)
			}
			if tt.planned > 1 {
				return
			}
			if got := closed(c); got.Status != "failed" || got.Failure.Reason != "infeasible: nobody can approve outlets: too few may approve" {
				t.Errorf("%+v", got)
			}
			if said := dataOf[bus.ErrorData](t, frames[len(frames)-2]); said.Reason != "nobody can approve outlets: too few may approve" {
				t.Errorf("%+v", said)
			}
		})
	}
	for status, over := range map[catalog.StepStatus]bool{catalog.StepInsufficient: true, catalog.StepFailed: true, catalog.StepPending: false} { // an earlier driver died before the close
		c := newCore(t)
		managed(c)
		step := catalog.StepView{PlanStep: countStep, Status: status, FailureReason: "nobody can approve outlets: no", Cause: catalog.NeedsApprovers}
		answerTransitions(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanReplanning, Task: "Count", Epoch: 1, Revision: 1, Steps: []catalog.StepView{step}})
		m := wellDone()
		layer(c, m, natsserver.Planner)
		NewManager(c.config(natsserver.Manager, m)).run(t.Context(), bus.PlanDispatch{TurnRef: c.turn().TurnRef, Driver: "d2", Epoch: 1})
		if got := closed(c); over && (len(m.received) != 0 || got.Status != "failed" || got.Failure.Reason != "infeasible: nobody can approve outlets: no") || !over && len(m.received) == 0 {
			t.Errorf("%s: %+v after %d requests to the model", status, got, len(m.received))
		}
	}
}
