package agentic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/bus"
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
