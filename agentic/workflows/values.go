package workflows

import (
	"bytes"
	"encoding/json"
	"strings"

	"aob.dev/writ/intents"
)

// Statuses of nodes that mean something to a graph: what is none of these has begun and
// not ended.
const (
	Pending = "pending"
	Running = "running"
	Done    = "done"
	Failed  = "failed" // for good: it has no attempt left
	Skipped = "skipped"
)

// Values are what a run knows so far.
type Values struct {
	RunID  string
	Inputs json.RawMessage
	Nodes  map[string]NodeValue // by id; one that is not there is pending
}

// NodeValue is what a run knows of a node.
type NodeValue struct {
	Status  string
	Begun   bool            // it had an attempt, though it may be pending again
	Order   string          // intent_id of its order, of the last attempt
	Outputs json.RawMessage // as Graph.Cut gave them; nil: none
}

func (n NodeValue) pending() bool { return n.Status == "" || n.Status == Pending }

func (n NodeValue) begun() bool { return n.Begun || !n.pending() }

func (n NodeValue) final() bool { return n.Status == Done || n.Status == Failed || n.Status == Skipped }

// reading looks values up, and decodes each document once.
type reading struct {
	Values
	docs map[string]any // outputs by id of the node; the inputs under ""
}

func read(v Values) *reading { return &reading{v, map[string]any{}} }

// at is the value at a path; false: there is none.
func (r *reading) at(p path) (any, bool) {
	switch p.root {
	case rootRun:
		return r.RunID, r.RunID != ""
	case partOrder:
		order := r.Nodes[p.node].Order
		return order, order != ""
	case rootInputs:
		return along(r.document("", r.Inputs), p.tokens)
	}
	return along(r.document(p.node, r.Nodes[p.node].Outputs), p.tokens)
}

func (r *reading) document(of string, text json.RawMessage) any {
	doc, ok := r.docs[of]
	if !ok {
		doc = decode(text)
		r.docs[of] = doc
	}
	return doc
}

// decode keeps the spelling of numbers; nil: it is no JSON.
func decode(text json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

func along(v any, tokens []any) (any, bool) {
	for _, t := range tokens {
		switch t := t.(type) {
		case string:
			object, _ := v.(map[string]any)
			next, ok := object[t]
			if !ok {
				return nil, false
			}
			v = next
		case int:
			list, _ := v.([]any)
			if t >= len(list) {
				return nil, false
			}
			v = list[t]
		}
	}
	return v, !masked(v)
}

// masked says whether a policy hides some of the value.
func masked(v any) bool {
	switch v := v.(type) {
	case string:
		return v == intents.Masked
	case []any:
		for _, x := range v {
			if masked(x) {
				return true
			}
		}
	case map[string]any:
		for _, x := range v {
			if masked(x) {
				return true
			}
		}
	}
	return false
}

// handedOn is a foreign value as an intent can have it: a whole number beyond the exact ones of RFC 8785 is the text
// of its digits, as is one that no double comes near; another number is the nearest double, as its readers take it.
func handedOn(v any) any {
	switch v := v.(type) {
	case json.Number:
		if _, err := intents.Canonical([]byte(v)); err == nil {
			return v
		}
		f, err := v.Float64()
		switch {
		case err != nil, f != 0 && !strings.ContainsAny(v.String(), ".eE"):
			return v.String()
		case f == 0: // -0, or too small for a double
			return 0
		}
		return f
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = handedOn(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = handedOn(v[name])
		}
		return out
	}
	return v
}

// canonical JSON of a value.
func canonical(v any) (json.RawMessage, error) {
	text, err := intents.MarshalPlain(v)
	if err != nil {
		return nil, err
	}
	return intents.Canonical(text)
}
