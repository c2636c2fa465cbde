package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// agentRun runs the plan of an agent: one step, whose reply is the answer.
type agentRun struct {
	*conversation
	reply        *tokens            // streamed to the user
	childReplies map[string]*tokens // of asked agents, by call
}

func newAgentRun(c *conversation) *agentRun {
	return &agentRun{conversation: c, reply: c.tokens(), childReplies: make(map[string]*tokens)}
}

func (a *agentRun) prepare(ctx context.Context) (over bool, err error) {
	return a.context(ctx)
}

// ended flushes the agent's text before its final status. The text of a turn that waits for
// approval stays.
func (a *agentRun) ended(_ context.Context, e end) error {
	a.asks = e.Routing
	switch s := a.step(e.step); s.Status {
	case catalog.StepDone:
		a.answer, a.components = e.Reply, json.RawMessage(e.Components)
		a.reply.flush(true)
		a.status("step_done", s.Task, e.step)
	case catalog.StepPendingApproval:
		a.reply.flush(true)
	case catalog.StepPending:
		a.reply.withdraw()
	default:
		a.reply.withdraw()
		a.status("step_failed", "", e.step)
	}
	return nil
}

func (a *agentRun) close(ctx context.Context, cause error) error {
	switch {
	case cause != nil:
		return a.abandon(ctx, cause)
	case a.plan.Status != catalog.PlanExecuting:
	case len(a.done()) == len(a.plan.Steps):
		if err := a.dreamt(ctx, a.answer); err != nil {
			return err
		}
		return a.complete(ctx, a.answer, nil)
	default:
		if s := a.plan.Steps[0]; s.Status != catalog.StepPending && s.Status != catalog.StepPendingApproval {
			reason := s.FailureReason
			if reason == "" {
				reason = "the agent was interrupted"
			}
			a.modelsOff = a.modelsOff || a.def.Type == agents.Remote // its server has given the whole answer: no model of ours is asked
			return a.fail(ctx, "the agent failed: "+reason, reason)
		}
	}
	return a.unfinished(ctx)
}

// show displays progress: only the agent itself speaks to the user, and its text is guarded here.
// A skill whose calls have a status is not named.
func (a *agentRun) show(s *catalog.StepView, p progress) {
	switch {
	case p.Request != nil:
		a.showRequest(p.Request)
	case p.Agent != "" && p.Event == "": // statuses always belong to the plan's agent, whichever agent works for it
		a.showChild(p)
	case p.Text != nil:
		a.reply.take(model.Event{Text: p.Text.Text, Reset: p.Text.Reset})
		a.reply.flush(false) // the task has already buffered it
	case p.Event != "":
		a.event(a.def.StatusEvents, p.Event, s.Step)
	case p.Action != nil:
		a.action(*p.Action)
	case a.def.StatusOf(p.Skill) == "":
		a.Run.show(s, p)
	}
}

// showChild displays the text of an asked agent: guarded, and not as part of the answer.
func (a *agentRun) showChild(p progress) {
	if !slices.ContainsFunc(a.agent.Others, func(o catalog.OtherAgent) bool { return o.Agent == p.Agent }) {
		return
	}
	t := a.childReplies[p.Ask]
	if t == nil {
		t = &tokens{now: a.cfg.Now, show: func(data bus.ContentData) {
			data.Agent = p.Agent
			a.frame(bus.FrameChildContent, data)
		}}
		a.childReplies[p.Ask] = t
		a.status("asking", p.Agent, 0)
	}
	if p.Text != nil {
		t.take(model.Event{Text: p.Text.Text, Reset: p.Text.Reset})
	}
	t.flush(p.Ended)
	if p.Ended {
		delete(a.childReplies, p.Ask)
	}
}

// action displays an action of the agent.
func (a *agentRun) action(d bus.ActionData) {
	d.Type, d.Payload = guarded(d.Type), json.RawMessage(guarded(string(d.Payload)))
	if slices.Contains(a.turn.actionTypes(), d.Type) && a.def.Has(actionTool.Name) && (len(d.Payload) == 0 || json.Valid(d.Payload)) {
		a.frame(bus.FrameAction, d)
	}
}
