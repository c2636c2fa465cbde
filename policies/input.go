package policies

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"aob.dev/writ/intents"
)

// Input is the policy's input for an order (schemas/policy_input.schema.json).
// It is pure: the same order and facts give the same document. The grant stays
// outside: who the actor is has been settled before policy is asked.
func Input(e *intents.Envelope, f intents.Facts) map[string]any {
	in := make(map[string]any, len(members))
	for _, name := range members {
		if v, ok := member(e, f, name); ok {
			in[name] = v
		}
	}
	return in
}

var members = []string{"intent", "actor", "constraints", "context", "signer", "approvals", "now", "task", "plan", "skill"}

// member makes one member of the input.
func member(e *intents.Envelope, f intents.Facts, name string) (v any, ok bool) {
	switch name {
	case "intent":
		return map[string]any{"type": e.Type(), "args": e.Decoded()}, true
	case "actor":
		p := e.Principal()
		return map[string]any{"user_id": p.UserID, "tenant": p.Tenant, "roles": list(f.Roles)}, true
	case "constraints":
		c := e.Constraints()
		return map[string]any{
			"issued_at": c.IssuedAt, "ttl_sec": c.TTLSec, "audience": c.Audience,
			"idempotency_key": c.IdempotencyKey, "capabilities": list(c.Capabilities),
		}, true
	case "context":
		return contextInput(e.Context()), true
	case "signer":
		return map[string]any{"kid": f.Signer.KID, "role": f.Signer.Role}, true
	case "approvals":
		return approvalsInput(f.Approvals), true
	case "now":
		return f.Now, true
	case "task":
		if t := f.Task; t != nil {
			return map[string]any{
				"task_id": t.TaskID, "plan_id": t.PlanID, "revision": t.Revision, "step": t.Step,
				"skills": list(t.Skills), "deadline": t.Deadline,
			}, true
		}
	case "plan":
		if p := f.Plan; p != nil {
			return map[string]any{
				"plan_id": p.PlanID, "status": p.Status, "epoch": p.Epoch, "revision": p.Revision,
				"replan_count": p.ReplanCount, "steps": p.Steps,
			}, true
		}
	case "skill":
		if s := f.Skill; s != nil && s.Digest != "" {
			return map[string]any{"name": s.Name, "digest": s.Digest, "effect": s.Effect}, true
		}
	}
	return nil, false
}

// appendOf writes what appendAt writes of the input of an order. What policies
// commonly read is taken from where it stands, and no member is made for it.
func appendOf(b []byte, e *intents.Envelope, f *intents.Facts, path []string) ([]byte, bool) {
	if out, ok := appendCommon(b, e, f, path); ok {
		return out, true
	}
	if path[0] == "intent" && len(path) > 1 && path[1] == "args" {
		return appendAt(b, e.Decoded(), path[2:])
	}
	v, there := member(e, *f, path[0])
	if !there {
		return append(b, undefined), true
	}
	return appendAt(b, v, path[1:])
}

// appendCommon writes members that stand one to three names deep; not ok: it
// knows nothing of the path.
func appendCommon(b []byte, e *intents.Envelope, f *intents.Facts, path []string) (_ []byte, ok bool) {
	text := func(s string) ([]byte, bool) { return appendString(append(b, 's'), s), true }
	switch path[0] {
	case "now":
		if len(path) == 1 {
			return text(f.Now)
		}
	case "approvals":
		if len(f.Approvals) == 0 {
			return append(b, 'a', 0), len(path) == 1
		}
	case "task":
		if f.Task == nil {
			return append(b, undefined), true
		}
	case "plan":
		if f.Plan == nil {
			return append(b, undefined), true
		}
	case "skill":
		if f.Skill == nil || f.Skill.Digest == "" {
			return append(b, undefined), true
		}
	case "context":
		if len(path) == 3 && path[1] == "labels" {
			if s, there := e.Label(path[2]); there {
				return text(s)
			}
			return append(b, undefined), true
		}
	}
	if len(path) != 2 {
		return b, false
	}
	switch path[0] + "." + path[1] {
	case "intent.type":
		return text(e.Type())
	case "actor.user_id":
		return text(e.Principal().UserID)
	case "actor.tenant":
		return text(e.Principal().Tenant)
	case "signer.kid":
		return text(f.Signer.KID)
	case "signer.role":
		return text(f.Signer.Role)
	case "constraints.ttl_sec":
		return appendValue(b, e.Constraints().TTLSec)
	case "plan.status":
		return text(f.Plan.Status)
	case "skill.name":
		return text(f.Skill.Name)
	case "skill.digest":
		return text(f.Skill.Digest)
	case "skill.effect":
		return text(f.Skill.Effect)
	case "task.skills":
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(f.Task.Skills)))
		for _, s := range f.Task.Skills {
			b = appendString(append(b, 's'), s)
		}
		return b, true
	}
	return b, false
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
