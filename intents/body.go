package intents

import (
	"encoding/json"
	"strconv"

	"aob.dev/writ/schemas"
)

// ReadBody decodes a canonical payload and validates it against
// schemas/envelope.schema.json. Its strings are parts of one copy of the payload,
// and its arguments are part of the payload itself.
func ReadBody(payload []byte) (Body, error) {
	c, err := scanPayload(payload)
	if err != nil {
		return Body{}, err
	}
	return c.body()
}

// readApart decodes a payload without validating it against the schema. What it returns
// shares no memory with the payload, and no two members share any.
func readApart(payload string) (Body, error) {
	s := scanner{text: payload, plant: true, apart: true}
	tree, ok := s.document()
	if !ok {
		return Body{}, notCanonical()
	}
	return bodyOf(tree, json.RawMessage(payload[s.args.from:s.args.to]))
}

// body validates a canonical payload and decodes it.
func (c canonical) body() (Body, error) {
	if !plainEnvelope(c.tree) {
		if v := schemas.Unsigned().Validate(c.tree); len(v) > 0 {
			return Body{}, Invalid("", v)
		}
	}
	return bodyOf(c.tree, c.bytes[c.args.from:c.args.to:c.args.to])
}

// bodyOf decodes the tree of an envelope. Missing members are left empty; an
// envelope with a member of another type is refused.
func bodyOf(tree any, args json.RawMessage) (Body, error) {
	var t taker
	root := t.object(tree)
	intent, actor, constraints := t.object(root["intent"]), t.object(root["actor"]), t.object(root["constraints"])
	b := Body{
		Version: t.text(root["version"]),
		Intent:  Spec{Type: t.text(intent["type"]), Args: args},
		Actor: Actor{
			UserID: t.text(actor["user_id"]), Tenant: t.text(actor["tenant"]), Roles: t.texts(actor["roles"]), Grant: t.text(actor["grant"]),
			KID: t.text(actor["kid"]),
		},
		Constraints: Constraints{
			IssuedAt: t.text(constraints["issued_at"]), TTLSec: t.count(constraints["ttl_sec"]), Audience: t.text(constraints["audience"]),
			IdempotencyKey: t.text(constraints["idempotency_key"]), Capabilities: t.texts(constraints["capabilities"]),
		},
		Context: t.context(root["context"]),
		TraceID: t.text(root["trace_id"]),
	}
	if tree == nil || t.odd {
		return Body{}, noEnvelope()
	}
	return b, nil
}

func noEnvelope() error { return Refuse(SchemaInvalid, "", "intent does not match the envelope") }

// argsOf is the tree of the arguments.
func argsOf(tree any) any {
	var t taker
	return t.object(t.object(tree)["intent"])["args"]
}

// taker takes values out of a tree.
type taker struct{ odd bool } // something was of another type

// take returns a value that exists; nil is none.
func take[T any](t *taker, v any) (x T, there bool) {
	if v == nil {
		return x, false
	}
	x, there = v.(T)
	t.odd = t.odd || !there
	return x, there
}

func (t *taker) object(v any) map[string]any {
	m, _ := take[map[string]any](t, v)
	return m
}

func (t *taker) text(v any) string {
	s, _ := take[string](t, v)
	return s
}

// texts of an array; nil, if there is none.
func (t *taker) texts(v any) []string {
	list, there := take[[]any](t, v)
	if !there {
		return nil
	}
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = t.text(x)
	}
	return out
}

func (t *taker) count(v any) int {
	n, there := take[json.Number](t, v)
	if !there {
		return 0
	}
	i, err := strconv.Atoi(string(n))
	t.odd = t.odd || err != nil
	return i
}

func (t *taker) context(v any) *Context {
	m, there := take[map[string]any](t, v)
	if !there {
		return nil
	}
	c := &Context{
		SessionID: t.text(m["session_id"]), TurnID: t.text(m["turn_id"]), PlanID: t.text(m["plan_id"]), Revision: t.count(m["revision"]),
		Step: t.count(m["step"]), TaskID: t.text(m["task_id"]), RunID: t.text(m["run_id"]), NodeID: t.text(m["node_id"]),
		Occurrence: t.count(m["occurrence"]), Ask: t.text(m["ask"]), Call: t.text(m["call"]), Tool: t.text(m["tool"]), Cause: t.text(m["cause"]),
	}
	if agent, there := take[map[string]any](t, m["agent"]); there {
		c.Agent = &Agent{Name: t.text(agent["name"]), Digest: t.text(agent["digest"])}
	}
	if labels, there := take[map[string]any](t, m["labels"]); there {
		c.Labels = make(map[string]string, len(labels))
		for name, value := range labels {
			c.Labels[name] = t.text(value)
		}
	}
	return c
}
