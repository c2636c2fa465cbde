package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// stepFinish ends a task with its step.
var stepFinish = newTransition(TypeStepFinish,
	func(v *View, o Intent, a catalog.StepFinish) (Effect, error) {
		v.addRead(SubjectTask(o.Tenant, a.TaskID))
		t, ok := v.s.tasks[o.Tenant+"/"+a.TaskID]
		if !ok || t.User != o.User {
			return Effect{}, intents.Refuse(intents.TaskScope, "/intent/args/task_id", "no such task of this user")
		}
		v.addPlanReads(t.plan)
		if err := mayAdvance(o, t.plan); err != nil {
			return Effect{}, err
		}
		ofNode := t.plan.View.Run != nil
		switch {
		case o.Signer == intents.RoleTask && a.TaskID != o.Context.TaskID && !(t.Parent == o.Context.TaskID && a.Status == catalog.AskUnavailable):
			return Effect{}, intents.Refuse(intents.TaskScope, "/intent/args/task_id", "not the key's own task, nor one that it has asked for and has no answer of")
		case t.Ended != "":
			return Effect{}, intents.Refuse(intents.KeyRevoked, "/intent/args/task_id", "the task has ended")
		case o.Signer != intents.RoleTask && a.Status != "failed":
			return Effect{}, illegal("/intent/args/status", "a manager or a workflow key may only say failed")
		case a.Status == catalog.AskUnavailable && (t.Ask == "" || t.ID == o.Context.TaskID):
			return Effect{}, illegal("/intent/args/status", "only the task that asked may say unavailable")
		case ofNode && t.plan.finishable(v, o, t, a) != nil:
			return Effect{}, t.plan.finishable(v, o, t, a)
		case !ofNode && a.Status == "done" && (t.plan.View.Agent != "") != (o.TextSize("reply") > 0):
			return Effect{}, illegal("/intent/args/reply", "the task of an agent's plan ends with a reply, and no other does")
		case !ofNode && a.Status == "done" && t.plan.View.Agent == "" && !slices.Contains(t.plan.Results[t.Step], a.MemoryKey):
			return Effect{}, illegal("/intent/args/memory_key", "done must name the result of a write_memory of this step")
		case a.WorkflowComplete && (t.plan.Runs == nil || t.plan.Runs.Remote == nil || t.Ask != "" || a.Status != "done"):
			return Effect{}, illegal("/intent/args/workflow_complete", "only the task of a remote agent's plan says so, with its reply")
		case a.Status == "held" && !t.plan.heldBy(t):
			return Effect{}, illegal("/intent/args/status", "no intent of this step waits, nor was one of this task held")
		}
		after := t.plan.clone()
		after.finish(t, a, o.At, o.Now)
		writes := append(t.plan.writes(t.Ask == "" && a.Status != "done" && a.Status != "held"), t.plan.writesOfTask(t)...)
		if t.Ask == "" && a.Status == "held" { // the turn waits, and frees its session
			writes = append(writes, t.plan.turnSubjects()...)
		}
		return Effect{after.answer(), writes}, nil
	},
	func(s *State, o Intent, a catalog.StepFinish) error {
		t, ok := s.tasks[o.Tenant+"/"+a.TaskID]
		if !ok {
			return fmt.Errorf("no task %s", a.TaskID)
		}
		t.Finished = o.Recorded
		s.endTask(t, TypeStepFinish, a.Status, a.Usage, o.At)
		t.plan.finish(t, a, o.At, o.Now)
		t.plan.nodeFinished(t, o, a)
		if t.Ask != "" {
			return nil
		}
		t.plan.AnswerErased = o.Erased
		t.plan.SessionEnded = t.plan.SessionEnded || a.WorkflowComplete
		if step := t.plan.step(t.Step); step != nil && step.Status == catalog.StepPendingApproval {
			s.freeSession(t.plan)
		}
		t.plan.Texts = append(t.plan.Texts, o.Recorded)
		t.plan.Unheld = false // its driver sees which steps may continue
		return nil
	}).retainsAllBut("reason", "suggestion", "reply", "components").restores(restoreReply)

// restoreReply restores the reply of an agent. The other texts stay with the plan.
func restoreReply(p *catalog.PlanView, o Intent) error {
	a, err := ArgsOf[catalog.StepFinish](o)
	if a.Reply != "" && a.Status == "done" && p.Run == nil {
		p.Response, p.Components = a.Reply, componentsOf(a)
	}
	return err
}

// heldBy reports whether an intent of a task's step waits, or one of the task or of those that
// it asked for has waited for approval. For a task that was asked for, only intents of its place
// count.
func (p *plan) heldBy(t *task) bool {
	own := map[string]bool{t.ID: true}
	for _, c := range p.Tasks {
		own[c.ID] = own[c.ID] || c.Parent == t.ID
	}
	return slices.ContainsFunc(p.IntentHistory, func(f *pastIntent) bool {
		waits := f.Status == statusHeld && f.Step == t.Step && (t.Ask == "" || f.Ask == t.Ask)
		return waits || own[f.HeldBy]
	})
}

// componentsOf returns the components of a reply; none if they are not JSON.
func componentsOf(a catalog.StepFinish) json.RawMessage {
	if !json.Valid([]byte(a.Components)) {
		return nil
	}
	return json.RawMessage(a.Components)
}

// finish applies step.finish to a plan. The result of a task that was asked for goes to the
// asking task: in the plan it changes only the usage.
func (p *plan) finish(t *task, a catalog.StepFinish, at, now time.Time) {
	p.View.Usage = catalog.AddUsage(p.View.Usage, a.Usage...)
	step := t.Step
	s := p.step(step)
	if s == nil || t.Ask != "" {
		return
	}
	s.FinishedAt, s.FailureReason, s.Cause, s.Suggestion = &at, a.Reason, a.Cause, a.Suggestion
	switch a.Status {
	case "done":
		s.Status, s.MemoryKey, s.Validated = catalog.StepDone, a.MemoryKey, true
		if p.Run == nil {
			p.View.Response, p.View.Components, p.View.WorkflowComplete = a.Reply, componentsOf(a), a.WorkflowComplete
		}
	case "held":
		s.Status = catalog.StepPendingApproval
		if !p.waiting(step) { // its held intents have ended in the meantime
			s.Status = catalog.StepPending
		}
	case "insufficient":
		s.Status = catalog.StepInsufficient
		if a.Cause == catalog.NeedsPlan && p.View.Revision == 1 && p.View.Agent == "" && p.View.Status == catalog.PlanExecuting {
			p.View.Status = catalog.PlanReplanning // for the first time: this is no replan
			return
		}
		p.replan(s, "insufficient", a.Reason, at)
	default:
		if p.Run != nil {
			p.nodeFailed(s, a.Reason, at, now)
			return
		}
		s.Status = catalog.StepFailed
		p.replan(s, "failed", a.Reason, at)
	}
}
