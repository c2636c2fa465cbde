package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// conversation is the common part of plans of the planner and of agents: the request of a user,
// the history, and an answer.
type conversation struct {
	*Run

	task      string         // the user's request
	soul      string         // the persona that answers; empty: the default
	closed    bool           // the session is closed and accepts no turn
	modelsOff bool           // no further model requests: a budget is exhausted, or there is nothing to decide
	route     *catalog.Route // how the request was routed to its agent; nil: the request named it
	answer    string         // of a plan without steps, or of an agent
	results   map[int]result // of the planner's steps that are done
	asks      askReport      // the agents asked

	agent      catalog.AgentGetResult // of the plan
	def        agents.Agent           // its definition; zero: the plan is the planner's
	components json.RawMessage        // of its reply
}

// context reads the inputs of the turn. over means that the turn has ended.
func (c *conversation) context(ctx context.Context) (over bool, err error) {
	p := c.plan // as it was claimed: no other transition returns these
	c.task, c.answer, c.components, c.route = p.Task, p.Response, p.Components, p.Route
	if p.ByAgent {
		c.turn.Reminder = c.task
	}
	if err := c.readSoul(ctx); err != nil {
		return false, err
	}
	if p.Agent != "" {
		if err := c.readAgent(ctx); err != nil {
			return false, err
		}
	}
	return c.readSession(ctx)
}

// readSoul reads the persona for the prompts.
func (c *conversation) readSoul(ctx context.Context) error {
	var soul catalog.Soul
	if _, err := c.submit(ctx, "soul.get", catalog.SoulGet{}, &soul); err != nil {
		if _, ok := errors.AsType[*IntentError](err); ok {
			return nil // the store of souls is down: intents that need it fail, others continue
		}
		return err
	}
	if p := soul.Persona; p != nil {
		c.soul = fmt.Sprintf("%s\n%s\nTone: %s\nLanguage: %s", p.Name, p.SystemPrompt, p.Tone, p.Language)
	}
	return nil
}

// readAgent reads the plan's agent: its limits and its display settings.
func (c *conversation) readAgent(ctx context.Context) error {
	if _, err := c.submit(ctx, "agent.get", catalog.AgentGet{}, &c.agent); err != nil {
		return err
	}
	def, err := c.cfg.definition(c.agent)
	if err == nil {
		c.def = *def
	}
	return err
}

// open opens a task for the first step that is ready. A step of the planner receives its inputs
// and no history; the step of an agent has the agent's limit.
func (c *conversation) open(ctx context.Context, running int) (wait func() end, until time.Time, err error) { //nolint:unparam // of a strategy; only nodes wait for a time
	wait, err = c.openWith(ctx, running, func(int, *runRequest) {})
	return wait, until, err
}

// openWith is open with more for the task of the step.
func (c *conversation) openWith(ctx context.Context, running int, more func(step int, req *runRequest)) (wait func() end, err error) {
	ready := c.plan.Ready()
	if len(ready) == 0 || running == catalog.MaxLive {
		return nil, nil
	}
	s, agent := ready[0], c.agent
	req := runRequest{Turn: c.turn, UserTask: c.task, Soul: c.soul, Route: c.route, Only: c.plan.Agent == "" && len(c.plan.Steps) == 1}
	more(s.Step, &req)
	if c.plan.Agent == "" && req.Direct == nil {
		req.Turn.History, req.Turn.Images = nil, nil
	}
	if s.Agent != "" {
		_, err = c.submitter.Submit(ctx, c.turn, Place{Step: s.Step}, "agent.get", catalog.AgentGet{}, &agent)
	}
	limit := c.cfg.stepTime()
	if agent.TimeLimitSec > 0 {
		limit = min(limit, time.Duration(agent.TimeLimitSec)*time.Second)
	}
	if err == nil {
		wait, err = c.openStep(ctx, s, limit, req)
	}
	if _, ok := errors.AsType[*IntentError](err); ok && running > 0 {
		return nil, nil // a step beside it has failed, as its task will report
	}
	return wait, err
}

// unfinished leaves a plan that waits for people.
func (c *conversation) unfinished(ctx context.Context) error {
	if c.plan.Status != catalog.PlanExecuting {
		return fmt.Errorf("plan is %s", c.plan.Status)
	}
	return c.waits(func(text string) {
		c.remember(ctx, "turn:"+c.turn.TurnID+":held", text, nil) // the end of the turn reports its usage
	})
}

// agentName returns the name of the plan's agent.
func (c *conversation) agentName() string { return cmp.Or(c.agent.Agent, agents.Planner) }
