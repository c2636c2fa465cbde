package policies

import (
	"encoding/json"
	"maps"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Input is the policy's input for an intent (schemas/policy_input.schema.json). It is pure: the
// same intent and decision inputs give the same document. The grant is left out: the actor has
// been determined before policy is evaluated.
func Input(e *intents.Envelope, f intents.DecisionInputs) map[string]any {
	in, _ := input(e, f)
	return in
}

// input is Input, and the inputs of the intent that marks stand for in it.
func input(e *intents.Envelope, f intents.DecisionInputs) (map[string]any, []hiddenInput) {
	p, c := e.Principal(), e.Constraints()
	args, hidden := withInputs(e.DecodedArgs(), f)
	in := map[string]any{
		"intent": map[string]any{"type": e.Type(), "args": args},
		"actor":  map[string]any{"user_id": p.UserID, "tenant": p.Tenant, "roles": list(f.Roles)},
		"constraints": map[string]any{
			"issued_at": c.IssuedAt, "ttl_sec": c.TTLSec, "audience": c.Audience,
			"idempotency_key": c.IdempotencyKey, "capabilities": list(c.Capabilities),
		},
		"context":   contextInput(e.Context()),
		"signer":    map[string]any{"kid": f.Signer.KID, "role": f.Signer.Role},
		"approvals": approvalsInput(f.Approvals),
		"now":       f.Now,
	}
	if t := f.Task; t != nil {
		task := map[string]any{
			"task_id": t.TaskID, "plan_id": t.PlanID, "revision": t.Revision, "step": t.Step,
			"skills": list(t.Skills), "deadline": t.Deadline,
		}
		if t.Agent != "" {
			task["agent"] = t.Agent
		}
		in["task"] = task
	}
	if p := f.Plan; p != nil {
		plan := map[string]any{
			"plan_id": p.PlanID, "status": p.Status, "epoch": p.Epoch, "revision": p.Revision,
			"replan_count": p.ReplanCount, "steps": p.Steps,
		}
		if p.ByAgent {
			plan["by_agent"] = true
		}
		in["plan"] = plan
	}
	if s := f.Skill; s != nil && s.Digest != "" {
		skill := map[string]any{"name": s.Name, "digest": s.Digest, "effect": s.Effect, "destructive": s.Destroys()}
		if s.Kind != "" {
			skill["kind"] = s.Kind
		}
		in["skill"] = skill
		if name := e.StringArg("skill"); (intents.Pin{Skill: s.Name}).OfTool(name) {
			identify(in, e.Type(), args, f, name)
		}
	}
	if p := f.Patch; p != nil {
		nodes := make([]any, len(p.Nodes))
		for i, n := range p.Nodes {
			node := map[string]any{"id": n.ID, "type": n.Type, "effect": n.Effect}
			if n.Fn != "" {
				node["fn"] = n.Fn
			}
			nodes[i] = node
		}
		in["patch"] = map[string]any{"nodes": nodes, "rewired": list(p.Rewired)}
	}
	return in, hidden
}

// identify replaces the name of a skill's tool, by which the intent names it, with the skill's
// id, so that the name cannot bypass a rule about the id.
func identify(in map[string]any, typ string, given any, f intents.DecisionInputs, name string) {
	args, _ := given.(map[string]any)
	args = maps.Clone(args)
	args["skill"] = f.Skill.Name
	in["intent"] = map[string]any{"type": typ, "args": args}
	task, ok := in["task"].(map[string]any)
	if !ok {
		return
	}
	skills := list(f.Task.Skills)
	for i, s := range skills {
		if s == name {
			skills[i] = f.Skill.Name
		}
	}
	task["skills"] = skills
}

// contextInput contains the members that the intent carries, and no others.
func contextInput(c intents.Context) map[string]any {
	m := map[string]any{}
	text := func(name, s string) {
		if s != "" {
			m[name] = s
		}
	}
	number := func(name string, n int) {
		if n != 0 {
			m[name] = n
		}
	}
	text("session_id", c.SessionID)
	text("turn_id", c.TurnID)
	text("plan_id", c.PlanID)
	number("revision", c.Revision)
	number("step", c.Step)
	text("task_id", c.TaskID)
	text("run_id", c.RunID)
	text("node_id", c.NodeID)
	number("occurrence", c.Occurrence)
	text("ask", c.Ask)
	text("call", c.Call)
	text("cause", c.Cause)
	if c.Agent != nil {
		m["agent"] = map[string]any{"name": c.Agent.Name, "digest": c.Agent.Digest}
	}
	if len(c.Labels) > 0 {
		labels := make(map[string]any, len(c.Labels))
		for k, v := range c.Labels {
			labels[k] = v
		}
		m["labels"] = labels
	}
	return m
}

func approvalsInput(approvals []intents.Approval) []any {
	out := make([]any, len(approvals))
	for i, a := range approvals {
		out[i] = map[string]any{"user_id": a.UserID, "decision": "approve", "at": a.At}
	}
	return out
}

// plainJSON decodes a value's JSON. Numbers retain their spelling.
func plainJSON(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return schemas.Decode(raw)
}

// decodeStrict decodes a value's JSON into another value, and refuses members that the other
// does not have.
func decodeStrict(v, into any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return intents.UnmarshalStrict(raw, into)
}

func list(items []string) []any {
	out := make([]any, len(items))
	for i, s := range items {
		out[i] = s
	}
	return out
}
