package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// A plan may be opened for routing: its request goes to one agent. The session's agent, if it has
// one, is already known; otherwise the classifier proposes one, the tree of agents.Decide makes
// the decision, and the router judges both again.

// routeRequest gives the request to an agent, or asks the user for clarification. over means that
// the turn has ended.
//
// Crash: before the plan nothing is recorded, and the next driver has the request classified
// again. After it the record has the agent, or the question as the answer.
func (p *plannedRun) routeRequest(ctx context.Context) (over bool, err error) {
	p.status("routing", "", 0)
	var offered catalog.AgentGetResult
	if _, err := p.submit(ctx, "agent.get", catalog.AgentGet{}, &offered); err != nil {
		return false, err
	}
	said, err := p.classify(ctx, offered.Others)
	if err != nil {
		return false, err
	}
	rules, open := make(map[string]agents.RoutingRule), make(map[string]bool)
	for _, a := range offered.Others {
		r := a.Routing
		rules[a.Agent], open[a.Agent] = agents.RoutingRule{Default: r.Default, Threshold: r.Threshold, Clarify: r.Clarify}, r.Open
	}
	if _, known := rules[said.Agent]; !known {
		said.Agent = "" // nor an agent that the user may not run
	}
	agent, decision := agents.Decide(rules, func(name string) bool { return open[name] }, said, p.plan.Routing.Clarify)
	said.Decision = decision
	plan := catalog.Plan{PlanID: p.turn.PlanID, Epoch: p.epoch, Revision: 1, Route: &said, Steps: []catalog.PlanStep{}}
	switch {
	case decision == "":
		return true, p.fail(ctx, "no agent is there: the default's breaker is open, or the user may not run it", "No agent is there for this just now.")
	case agent == "":
		if plan.Answer, err = p.question(ctx, said, offered.Others); err != nil {
			return false, err
		}
	default:
		plan.Steps = append(plan.Steps, catalog.PlanStep{Step: 1, Task: agent, Skills: []string{}, Agent: agent, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the agent's reply"}})
	}
	plan.Usage = p.used
	if err := p.transition(ctx, "plan", plan); err != nil {
		return false, err
	}
	p.used, p.answer, p.route = nil, plan.Answer, &said
	p.status("routed", agent, 0)
	return false, nil
}

// routable is an agent as the classifier reads it.
type routable struct {
	Agent       string   `json:"agent"`
	DisplayName string   `json:"display_name,omitempty"`
	Description string   `json:"description"`
	Examples    []string `json:"examples,omitempty"`
	Default     bool     `json:"default,omitempty"`
}

// classify asks which agent the request is for. Output in the wrong form names nobody.
func (p *plannedRun) classify(ctx context.Context, offered []catalog.OtherAgent) (said catalog.Route, err error) {
	var table []routable
	for _, a := range offered {
		table = append(table, routable{a.Agent, a.DisplayName, a.Description, a.Routing.Examples, a.Routing.Default})
	}
	var m blocks
	m.add("Agents", table)
	if before := p.plan.Routing.Before; before != nil {
		m.add("Before", map[string]string{"message": p.textOf(ctx, before.PlanID), "agent": before.Agent})
	}
	agent := p.cfg.builtin(agents.Classifier)
	output, err := outputTool(agent, func(args json.RawMessage) error {
		if err := json.Unmarshal(args, &said); err != nil {
			return mistaken("%v", err)
		}
		return nil
	})
	if err != nil {
		return said, err
	}
	turn := p.turn
	turn.History, turn.Images = nil, nil
	chooser, own := p.cfg.Models[agents.Classifier]
	if !own {
		chooser = p.cfg.Model
	}
	l := &loop{model: chooser, agent: agent, log: p.cfg.Log, tools: []*tool{output}, req: request(agent, "", turn, p.cfg.Now(), m.task(p.task))}
	_, err = l.run(ctx)
	p.used = catalog.AddUsage(p.used, l.used...)
	var wrong *outputError
	if errors.As(err, &wrong) || errors.Is(err, errNoOutput) {
		p.cfg.Log.WarnContext(ctx, "the request is not classified", slog.String("plan_id", p.turn.PlanID), slog.String("error", err.Error()))
		return catalog.Route{}, nil
	}
	return said, err
}

// textOf returns the text of an earlier request; empty if it cannot be read.
func (p *plannedRun) textOf(ctx context.Context, planID string) string {
	var got catalog.PlanGetResult
	if _, err := p.submit(ctx, "plan.get", catalog.PlanGet{PlanID: planID}, &got); err != nil {
		p.cfg.Log.WarnContext(ctx, "the request before is not read", slog.String("plan_id", planID), slog.String("error", err.Error()))
	}
	return got.Plan.Task
}

// question asks the user for clarification, in the user's language.
func (p *plannedRun) question(ctx context.Context, said catalog.Route, offered []catalog.OtherAgent) (string, error) {
	a := offered[slices.IndexFunc(offered, func(a catalog.OtherAgent) bool { return a.Agent == said.Agent })]
	return p.composed(ctx, "Clarify", map[string]string{"for": a.Description, "ask": a.Routing.About, "language": said.Language})
}
