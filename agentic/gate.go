package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents/catalog"
)

// A plan may be opened at the gate: its request goes to one agent. The session's agent, if
// it has one, is known by then; else the classifier says which one fits, the tree of
// agents.Decide what is made of that, and the router judges both again.

// route gives the request to an agent, or asks the user what is meant. over says that the
// turn has ended.
//
// Crash: before the plan nothing is recorded, and the next driver has the request
// classified anew. Behind it the record has the agent, or the question as the answer.
func (d *drive) route(ctx context.Context) (over bool, err error) {
	d.status("routing", "", 0)
	var offered catalog.AgentGetResult
	if _, err := d.order(ctx, "agent.get", catalog.AgentGet{}, &offered); err != nil {
		return false, err
	}
	said, err := d.classify(ctx, offered.Others)
	if err != nil {
		return false, err
	}
	gates, open := make(map[string]agents.Gate), make(map[string]bool)
	for _, a := range offered.Others {
		r := a.Routing
		gates[a.Agent], open[a.Agent] = agents.Gate{Default: r.Default, Threshold: r.Threshold, Clarify: r.Clarify}, r.Open
	}
	if _, known := gates[said.Agent]; !known {
		said.Agent = "" // nor one that the user may not run
	}
	agent, decision := agents.Decide(gates, func(name string) bool { return open[name] }, said, d.gate.Clarify)
	said.Decision = decision
	plan := catalog.Plan{PlanID: d.turn.PlanID, Epoch: d.epoch, Revision: 1, Route: &said, Steps: []catalog.PlanStep{}}
	switch {
	case decision == "":
		return true, d.fail(ctx, "no agent is there: the default's breaker is open, or the user may not run it", "No agent is there for this just now.")
	case agent == "":
		if plan.Answer, err = d.question(ctx, said, offered.Others); err != nil {
			return false, err
		}
	default:
		plan.Steps = append(plan.Steps, catalog.PlanStep{Step: 1, Task: agent, Skills: []string{}, Agent: agent, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the agent's reply"}})
	}
	plan.Usage = d.used
	if err := d.move(ctx, "plan", plan); err != nil {
		return false, err
	}
	d.used, d.answer, d.given = nil, plan.Answer, &said
	d.status("routed", agent, 0)
	return false, d.loadAgent(ctx)
}

// routable is an agent as the classifier reads it.
type routable struct {
	Agent       string   `json:"agent"`
	DisplayName string   `json:"display_name,omitempty"`
	Description string   `json:"description"`
	Examples    []string `json:"examples,omitempty"`
	Default     bool     `json:"default,omitempty"`
}

// classify asks which agent the request is for. What the classifier cannot say in its form
// names nobody.
func (d *drive) classify(ctx context.Context, offered []catalog.OtherAgent) (said catalog.Route, err error) {
	var table []routable
	for _, a := range offered {
		table = append(table, routable{a.Agent, a.DisplayName, a.Description, a.Routing.Examples, a.Routing.Default})
	}
	var m blocks
	m.add("Agents", table)
	if before := d.gate.Before; before != nil {
		m.add("Before", map[string]string{"message": d.textOf(ctx, before.PlanID), "agent": before.Agent})
	}
	agent := agents.Builtin(agents.Classifier)
	output, err := outputTool(agent, func(args json.RawMessage) error {
		if err := json.Unmarshal(args, &said); err != nil {
			return mistaken("%v", err)
		}
		return nil
	})
	if err != nil {
		return said, err
	}
	turn := d.turn
	turn.History = nil
	chooser, own := d.cfg.Models[agents.Classifier]
	if !own {
		chooser = d.cfg.Model
	}
	l := &loop{model: chooser, agent: agent, log: d.cfg.Log, tools: []*tool{output}, req: request(agent, "", turn, d.cfg.Now(), m.task(d.task))}
	_, err = l.run(ctx)
	d.used = catalog.AddUsage(d.used, l.used...)
	var wrong *outputError
	if errors.As(err, &wrong) || errors.Is(err, errNoOutput) {
		d.cfg.Log.WarnContext(ctx, "the request is not classified", slog.String("plan_id", d.turn.PlanID), slog.String("error", err.Error()))
		return catalog.Route{}, nil
	}
	return said, err
}

// textOf an earlier request; empty where it cannot be read.
func (d *drive) textOf(ctx context.Context, planID string) string {
	var got catalog.PlanGetResult
	if _, err := d.order(ctx, "plan.get", catalog.PlanGet{PlanID: planID}, &got); err != nil {
		d.cfg.Log.WarnContext(ctx, "the request before is not read", slog.String("plan_id", planID), slog.String("error", err.Error()))
	}
	return got.Plan.Task
}

// question asks the user what is meant, in the user's language.
func (d *drive) question(ctx context.Context, said catalog.Route, offered []catalog.OtherAgent) (string, error) {
	a := offered[slices.IndexFunc(offered, func(a catalog.OtherAgent) bool { return a.Agent == said.Agent })]
	return d.composed(ctx, "Clarify", map[string]string{"for": a.Description, "ask": a.Routing.About, "language": said.Language})
}
