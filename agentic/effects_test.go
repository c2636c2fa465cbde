package agentic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// halfClosed is a plan whose first step was completed, and whose second closed twelve tickets
// before it failed.
func halfClosed() catalog.PlanView {
	second := countStep
	second.Step = 2
	p := catalog.PlanView{PlanID: "plan_1", Task: "How many outlets?", Status: catalog.PlanReplanning, Revision: 1, Steps: []catalog.StepView{
		{PlanStep: countStep, Status: catalog.StepDone, Revision: 1, MemoryKey: taskKey},
		{PlanStep: second, Status: catalog.StepFailed, Revision: 1},
	}, History: []catalog.Replan{{Attempt: 1, Trigger: "failed", FailedStep: 2, Reason: "the model is gone"}}}
	for i := range 14 {
		status := "done"
		if i >= 12 {
			status = "indeterminate"
		}
		p.IntentHistory = append(p.IntentHistory, catalog.PastIntent{
			Step: 2, Revision: 1, IntentID: fmt.Sprint(i), Type: "skill.call", Effect: catalog.Once, Status: status,
			Args: json.RawMessage(fmt.Sprintf(`{"skill":"close_ticket","input":{"ticket":"T-%d"}}`, i+1)),
		})
	}
	return p
}

// TestEffectsBeforeFailure: the report of a failure lists the effects that happened, from the
// composer, and without any model too.
func TestEffectsBeforeFailure(t *testing.T) {
	c := newCore(t)
	managed(c)
	answerTransitions(c, halfClosed())
	m := says(map[string][]any{agents.Planner: {call("plan", planArgs{Infeasible: "no more tickets can be closed"})}, agents.Composer: {"Twelve are closed."}})
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	const want = "Twelve are closed.\n\nBefore it failed: completed: Count the outlets; close_ticket: 12 done, 2 indeterminate."
	if e := dataOf[bus.ErrorData](t, frames[len(frames)-2]); e.Reason != want {
		t.Errorf("told %q, which names not all that was done", e.Reason)
	}
	why, _ := block[string](t, m.requests(agents.Composer)[0], "Failure")
	for _, text := range []string{"no more tickets can be closed", "close_ticket: 12 done, 2 indeterminate", `close_ticket {"ticket":"T-12"}: done`, `{"ticket":"T-13"}: indeterminate`, `completed: Count the outlets {"count":10}`} {
		if !strings.Contains(why, text) {
			t.Errorf("composed without %q from %q", text, why)
		}
	}
}

func TestEffectsWithoutModel(t *testing.T) {
	c := newCore(t)
	managed(c)
	answerTransitions(c, halfClosed())
	layer(c, says(nil), allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	const want = "I could not complete this request: the model could not answer: nothing is scripted for composer. Before it failed: completed: Count the outlets; close_ticket: 12 done, 2 indeterminate."
	if e := dataOf[bus.ErrorData](t, frames[len(frames)-2]); e.Reason != want {
		t.Errorf("told %q", e.Reason)
	}
}

// TestCancelledAreNamed: a plan that ends, in whatever way, names the calls that never will be made.
func TestCancelledAreNamed(t *testing.T) {
	for name, end := range map[string]planArgs{"infeasible": {Infeasible: "no more"}, "asked": {Ask: "Which else?"}} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			managed(c)
			p := halfClosed()
			for i, state := range []catalog.PastIntent{{Status: "held"}, {Status: "failed", Code: intents.Cancelled}} {
				state.Step, state.Revision, state.IntentID, state.Type, state.Effect = 3, 1, fmt.Sprint("held", i), "skill.call", catalog.Once
				state.Args = json.RawMessage(fmt.Sprintf(`{"skill":"refund","input":{"order":"O-%d"}}`, i))
				p.IntentHistory = append(p.IntentHistory, state)
			}
			answerTransitions(c, p)
			layer(c, says(map[string][]any{agents.Planner: {call("plan", end)}, agents.Composer: {composed}}), allRoles...)
			dispatchTurn(c)
			frames := shown(c)
			told := string(frames[len(frames)-2].Data)
			for _, text := range []string{`refund: 2 cancelled`, `Cancelled, not carried out (2):\n- refund {\"order\":\"O-0\"}\n- refund {\"order\":\"O-1\"}`, "12 done, 2 indeterminate"} {
				if !strings.Contains(told, text) {
					t.Errorf("told %s without %s", told, text)
				}
			}
		})
	}
}

// TestTwentyFiveUpdates: of 25 calls one is refused and five wait for approval; the user reads each in
// its true state, in words that no model has written.
func TestTwentyFiveUpdates(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Once}))
	states := map[int]func(placed) *intents.Answer{3: refuse(intents.PolicyDenied, "not this one")}
	for i := range 5 {
		states[10+i] = refuse(intents.ApprovalRequired, "somebody must agree")
	}
	c.on("skill.call", func(p placed) *intents.Answer {
		var a struct{ Input struct{ Update int } }
		if json.Unmarshal(p.Args, &a) != nil || states[a.Input.Update] == nil {
			return done(catalog.SkillCallResult{Output: json.RawMessage(`{"updated":true}`)})(p)
		}
		return states[a.Input.Update](p)
	})
	c.on("plan.get", done(catalog.PlanGetResult{Plan: catalog.PlanView{
		PlanID: "plan_1", Status: catalog.PlanExecuting, Steps: []catalog.StepView{{PlanStep: countStep, Status: catalog.StepPendingApproval, Revision: 1}},
	}}))
	var updates []model.Call
	for i := range 25 {
		updates = append(updates, call("outlets", map[string]any{"update": i}))
	}
	m := wellDone()
	m.replies[agents.Executor] = []any{updates}
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	told := dataOf[bus.PendingApprovalData](t, frames[len(frames)-1]).Text
	for _, text := range []string{"Waiting for approval (5):\n- outlets {\"update\":10}\n", "Done (19):\n- outlets {\"update\":0}\n", "Not carried out (1):\n- outlets {\"update\":3}: not this one"} {
		if !strings.Contains(told, text) {
			t.Errorf("told %q without %q", told, text)
		}
	}
	if n := strings.Count(told, "\n- "); n != 25 || len(m.requests(agents.Executor)) != 1 || len(m.requests(agents.Composer)) != 0 {
		t.Errorf("%d calls are told of, after %d requests", n, len(m.requests(agents.Executor)))
	}
}

// TestPassingRefusals: a refusal that ends by itself does not end a look-up whose answer is written
// already.
func TestPassingRefusals(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("write_memory", inTurn(refuse(intents.MemoryLock, "not now"), done(catalog.WriteMemoryResult{Key: taskKey, Validated: true})))
	layer(c, says(map[string][]any{agents.Planner: {callIt, composed}}), allRoles...)
	dispatchTurn(c)
	shown(c)
	if got := closed(c); got.Status != "complete" || got.Response != composed || len(c.ofType("write_memory")) != 2 {
		t.Errorf("%+v", got)
	}
}
