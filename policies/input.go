package policies

import (
	"bytes"
	"encoding/json"
	"maps"

	"aob.dev/writ/intents"
)

// Input is the policy's input for an order (schemas/policy_input.schema.json).
// It is pure: the same order and facts give the same document. The grant stays
// outside: who the actor is has been settled before policy is asked.
func Input(e *intents.Envelope, f intents.Facts) map[string]any {
	in, _ := input(e, f)
	return in
}

// input is Input, and which inputs of the order marks stand for in it.
func input(e *intents.Envelope, f intents.Facts) (map[string]any, []unseen) {
	p, c := e.Principal(), e.Constraints()
	args, hidden := given(e.Decoded(), f)
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

// identify puts the id of a skill in the place of its tool's name, by which the order
// names it, so that no rule about the id can be passed by with the name.
func identify(in map[string]any, typ string, given any, f intents.Facts, name string) {
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

// contextInput holds the members that the order carries, and no others.
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

// plainJSON is a value as its JSON reads. Numbers stay as they are written.
func plainJSON(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return out, d.Decode(&out)
}

// decodeStrict reads a value into another by its JSON, and refuses members that
// the other does not have.
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
