package agentic

import (
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// answerTransitions has the core answer the transitions of a plan with the plan after them, in
// the cases that these tests play. Only plan.claim returns the request; step.finish returns the
// arguments of the history too.
func answerTransitions(c *core, p catalog.PlanView) {
	p.Steps = slices.Clone(p.Steps)
	told := func() catalog.PlanView {
		v := p
		v.Task, v.Steps, v.IntentHistory = "", slices.Clone(p.Steps), slices.Clone(p.IntentHistory)
		for i := range v.IntentHistory {
			v.IntentHistory[i].Args = json.RawMessage(`{}`)
		}
		return v
	}
	read := func(from placed, args any) {
		if err := json.Unmarshal(from.Args, args); err != nil {
			c.t.Error(err)
		}
	}
	c.on("plan.claim", func(o placed) *intents.Answer {
		var a catalog.PlanClaim
		read(o, &a)
		p.Epoch = a.Epoch
		for i := range p.Steps {
			if p.Steps[i].Status == catalog.StepRunning {
				p.Steps[i].Status = catalog.StepPending
			}
		}
		return done(p)(o)
	})
	c.on("plan", func(o placed) *intents.Answer {
		var a catalog.Plan
		read(o, &a)
		p.Steps = slices.DeleteFunc(p.Steps, func(s catalog.StepView) bool { return s.Status != catalog.StepDone })
		for _, s := range a.Steps {
			p.Steps = append(p.Steps, catalog.StepView{PlanStep: s, Status: catalog.StepPending, Revision: a.Revision})
		}
		p.Revision, p.PlanDigest, p.Status = a.Revision, o.ID, catalog.PlanExecuting
		return done(told())(o)
	})
	var running *catalog.StepView
	c.on("step", func(o placed) *intents.Answer {
		var a catalog.Step
		read(o, &a)
		result := catalog.StepResult{TaskID: a.TaskID}
		for i := range p.Steps {
			if p.Steps[i].Step == a.Step {
				running = &p.Steps[i]
			}
			if from := p.Steps[i]; from.Step < a.Step {
				result.InputKey = from.MemoryKey
			}
		}
		running.Status, running.TaskID = catalog.StepRunning, a.TaskID
		result.Plan = told()
		return done(result)(o)
	})
	fails := func(status catalog.StepStatus, trigger, reason, suggestion string) {
		running.Status, running.FailureReason, running.Suggestion = status, reason, suggestion
		if p.Agent != "" {
			return
		}
		p.Status = catalog.PlanReplanning
		p.History = append(p.History, catalog.Replan{Attempt: len(p.History) + 1, Trigger: trigger, FailedStep: running.Step, Reason: reason, RevisedAt: time.Now()})
	}
	c.on("step.finish", func(o placed) *intents.Answer {
		var a catalog.StepFinish
		read(o, &a)
		if running == nil || a.TaskID != running.TaskID { // of an asked agent
			return done(told())(o)
		}
		switch a.Status {
		case taskDone:
			running.Status, running.MemoryKey = catalog.StepDone, a.MemoryKey
		case taskPendingApproval:
			running.Status = catalog.StepPendingApproval
		default:
			fails(catalog.StepStatus(a.Status), a.Status, a.Reason, a.Suggestion)
			running.Cause = a.Cause
		}
		answer := done(told())(o)
		answer.Details = marshal(catalog.PlanDetails{IntentHistory: p.IntentHistory})
		return answer
	})
	c.on("plan.get", func(o placed) *intents.Answer {
		if running != nil && running.Status == catalog.StepRunning { // only a violation ends a step without a transition
			fails(catalog.StepFailed, "contract_violation", "it did not work", "")
		}
		return done(catalog.PlanGetResult{Plan: p})(o)
	})
}
