package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// complete ends the plan with the answer to the user.
func (c *conversation) complete(ctx context.Context, response string, data json.RawMessage) error {
	return c.answered(ctx, catalog.PlanComplete, response, data)
}

// askUser ends the plan with a question, and with what was done before it. The answer is the next
// request in the session.
func (c *conversation) askUser(ctx context.Context, question string) error {
	if line, _ := c.effects(ctx); line != "" {
		question += "\n\nBefore this question: " + line + "."
	}
	return c.answered(ctx, catalog.PlanNeedsInput, visible.Cut(guarded(question), maxResponse), nil)
}

// answered ends the plan with a text for the user.
func (c *conversation) answered(ctx context.Context, status catalog.PlanStatus, response string, data json.RawMessage) error {
	response = c.rememberEnd(ctx, c.withCancelled(ctx, response))
	c.closeSession(ctx)
	if err := c.transition(ctx, "plan.close", catalog.PlanClose{PlanID: c.turn.PlanID, Epoch: c.epoch, Status: string(status), Response: response, Usage: c.used}); err != nil {
		return err
	}
	c.frame(bus.FrameAnswer, bus.AnswerData{Response: response, Data: data, Components: c.components})
	c.frame(bus.FrameDone, bus.DoneData{PlanID: c.turn.PlanID, Status: string(status), WorkflowComplete: c.plan.WorkflowComplete})
	c.logAsks(ctx)
	return nil
}

// maxResponse bounds an answer, in bytes.
const maxResponse = 32 << 10

// composed returns a text of the composer, shown to the user while it is written.
func (c *conversation) composed(ctx context.Context, block string, about any) (string, error) {
	show := c.tokens()
	text, err := c.compose(ctx, block, about, show.take)
	if err != nil {
		show.withdraw()
		return "", err
	}
	show.flush(true)
	return guarded(text), nil
}

// tokens returns a display for a text that is being written.
func (c *conversation) tokens() *tokens {
	return &tokens{show: func(data bus.ContentData) { c.frame(bus.FrameToken, data) }, now: c.cfg.Now}
}

// compose has the composer write a text for the user about the content of a block. on receives
// the text while it is written.
func (c *conversation) compose(ctx context.Context, block string, about any, on func(model.Event)) (string, error) {
	if c.dreams() {
		return "", nil // nobody would read it
	}
	var m blocks
	m.add(block, about)
	if block == "Failure" && len(c.plan.IntentHistory) > 0 { // effects that happened despite the failure
		m.add("Effects", c.plan.IntentHistory)
	}
	agent := c.cfg.builtin(agents.Composer)
	l := &loop{
		model: c.cfg.Model, log: c.cfg.Log, agent: agent, on: on,
		req: request(agent, c.soul, c.turn, c.cfg.Now(), m.task(c.task)),
	}
	text, err := l.run(ctx)
	c.used = catalog.AddUsage(c.used, l.used...)
	if err == nil && strings.TrimSpace(text) == "" {
		err = &model.Error{Reason: "the model answered without text"}
	}
	return visible.Cut(text, maxResponse), err
}

// fail closes the plan with the structured failure, for machines, and explains it to the user in
// plain language.
func (c *conversation) fail(ctx context.Context, reason, why string) error {
	line, each := c.effects(ctx)
	if each != "" {
		why += "\nBefore it failed: " + line + "\n" + each
	}
	if line != "" {
		line = " Before it failed: " + line + "."
	}
	response, err := "I could not complete this request: "+why, error(nil)
	if !c.modelsOff {
		response, err = c.compose(ctx, "Failure", why, nil)
	}
	var unanswered *model.Error
	switch {
	case errors.As(err, &unanswered):
		response = "I could not complete this request: " + plain(err) + "." + line
	case err != nil:
		response = "I could not complete this request." + line
	case !c.modelsOff && !c.dreams() && line != "": // whatever the model writes
		response = strings.TrimSpace(response + "\n\n" + strings.TrimSpace(line))
	}
	return c.failed(ctx, reason, response)
}

// infeasible closes the plan with the planner's words: why the request cannot be done. What was
// done before is explained with it.
func (c *conversation) infeasible(ctx context.Context, why string) error {
	if line, _ := c.effects(ctx); line != "" {
		return c.fail(ctx, "infeasible: "+why, why)
	}
	return c.failed(ctx, "infeasible: "+why, why)
}

// failed closes the plan with a reason for machines and an explanation for the user.
func (c *conversation) failed(ctx context.Context, reason, response string) error {
	f := catalog.Failure{Reason: visible.Cut(reason, 1000), CompletedSteps: c.done()}
	if n := len(c.plan.History); n > 0 {
		h := c.plan.History[n-1]
		f.LastFailure = &catalog.LastFailure{Step: h.FailedStep, Reason: visible.Cut(h.Reason, 1000)}
	}
	response = c.withCancelled(ctx, guarded(response))
	if c.isCurrent(ctx) {
		response = c.rememberEnd(ctx, response)
	}
	if err := c.transition(ctx, "plan.close", catalog.PlanClose{PlanID: c.turn.PlanID, Epoch: c.epoch, Status: string(catalog.PlanFailed), Failure: &f, Usage: c.used}); err != nil {
		return err
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	c.frame(bus.FrameError, bus.ErrorData{Reason: response, Failure: raw})
	c.frame(bus.FrameDone, bus.DoneData{PlanID: c.turn.PlanID, Status: string(catalog.PlanFailed)})
	c.logAsks(ctx)
	return nil
}

// abandon ends a plan that this driver cannot continue. The error means that the plan is still
// open.
func (c *conversation) abandon(ctx context.Context, cause error) error {
	reason := plain(cause)
	if refused, ok := errors.AsType[*IntentError](cause); ok && refused.Answer.Code == intents.RateLimited { // no further model requests
		reason, c.modelsOff = refused.Answer.Reason, true
	}
	if halted := (*haltedError)(nil); errors.As(cause, &halted) {
		reason, c.modelsOff = halted.why, true
	}
	c.modelsOff = c.modelsOff || reason == internalError
	err := c.fail(ctx, reason, reason)
	if err != nil {
		text := "I could not complete this request."
		if line, _ := c.effects(ctx); line != "" {
			text += " Before it failed: " + line + "."
		}
		c.frame(bus.FrameError, bus.ErrorData{Reason: guarded(text)})
		c.frame(bus.FrameDone, bus.DoneData{PlanID: c.turn.PlanID, Status: string(catalog.PlanFailed)})
	}
	return err
}
