package intents

import (
	"bytes"
	"encoding/json"
	"strconv"

	"aob.dev/writ/schemas"
)

// ReadBody takes a canonical payload apart and holds it to
// schemas/envelope.schema.json. Its strings are parts of one copy of the payload,
// and its arguments are a part of the payload itself.
func ReadBody(payload []byte) (Body, error) {
	c, err := scanPayload(payload)
	if err != nil {
		return Body{}, err
	}
	return c.body()
}

// readApart takes a payload apart that is not held to the schema. What it gives
// shares no memory with the payload, nor among itself.
func readApart(payload []byte) (Body, error) {
	s := scanner{b: payload, plant: true}
	tree, ok := s.document()
	if _, object := tree.(map[string]any); !ok || !object {
		return Body{}, Refuse(SchemaInvalid, "", "payload is not a canonical envelope (RFC 8785)")
	}
	return bodyOf(tree, bytes.Clone(payload[s.args.from:s.args.to])), nil
}

// body judges a canonical payload and takes it apart.
func (c canonical) body() (Body, error) {
	if v := schemas.Unsigned().Validate(c.tree); len(v) > 0 {
		return Body{}, Invalid(SchemaInvalid, "", v)
	}
	return bodyOf(c.tree, c.bytes[c.args.from:c.args.to:c.args.to]), nil
}

// bodyOf takes the tree of an envelope apart. In one that was not held to the
// schema what is of another type counts as missing.
func bodyOf(tree any, args json.RawMessage) Body {
	root := members(tree)
	intent, actor, constraints := members(root["intent"]), members(root["actor"]), members(root["constraints"])
	b := Body{
		Version: text(root["version"]),
		Intent:  Intent{Type: text(intent["type"]), Args: args},
		Actor:   Actor{UserID: text(actor["user_id"]), Tenant: text(actor["tenant"]), Roles: texts(actor["roles"]), Grant: text(actor["grant"])},
		Constraints: Constraints{
			IssuedAt: text(constraints["issued_at"]), TTLSec: count(constraints["ttl_sec"]), Audience: text(constraints["audience"]),
			IdempotencyKey: text(constraints["idempotency_key"]), Capabilities: texts(constraints["capabilities"]),
		},
		TraceID: text(root["trace_id"]),
	}
	if context, there := root["context"].(map[string]any); there {
		b.Context = contextOf(context)
	}
	return b
}

func contextOf(m map[string]any) *Context {
	c := &Context{
		SessionID: text(m["session_id"]), TurnID: text(m["turn_id"]), PlanID: text(m["plan_id"]), Revision: count(m["revision"]),
		Step: count(m["step"]), TaskID: text(m["task_id"]), RunID: text(m["run_id"]), NodeID: text(m["node_id"]),
		Occurrence: count(m["occurrence"]), Cause: text(m["cause"]),
	}
	if agent, there := m["agent"].(map[string]any); there {
		c.Agent = &Agent{Name: text(agent["name"]), Digest: text(agent["digest"])}
	}
	if labels, there := m["labels"].(map[string]any); there {
		c.Labels = make(map[string]string, len(labels))
		for name, value := range labels {
			c.Labels[name] = text(value)
		}
	}
	return c
}

// argsOf is the tree of the arguments.
func argsOf(tree any) any { return members(members(tree)["intent"])["args"] }

func members(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// texts of an array; nil, if there is none.
func texts(v any) []string {
	list, there := v.([]any)
	if !there {
		return nil
	}
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = text(x)
	}
	return out
}

func count(v any) int {
	n, _ := v.(json.Number)
	i, err := strconv.Atoi(string(n))
	if err != nil {
		return 0
	}
	return i
}
