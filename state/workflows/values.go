package workflows

import (
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Statuses of nodes that the graph distinguishes: any other has begun and not ended.
const (
	Pending = "pending"
	Running = "running"
	Done    = "done"
	Failed  = "failed" // permanently: no attempt is left
	Skipped = "skipped"
)

// Values are the known values of a run.
type Values struct {
	RunID  string
	Inputs json.RawMessage
	Nodes  map[string]NodeValue // by id; a missing one is pending
}

// NodeValue is what is known of a node.
type NodeValue struct {
	Status  string
	Begun   bool            // it had an attempt, though it may be pending again
	Intent  string          // intent_id of its last attempt
	Outputs json.RawMessage // as Graph.Cut returned them; nil: none
}

func (n NodeValue) pending() bool { return n.Status == "" || n.Status == Pending }

func (n NodeValue) begun() bool { return n.Begun || !n.pending() }

func (n NodeValue) final() bool { return n.Status == Done || n.Status == Failed || n.Status == Skipped }

// reading looks up values, and decodes each document once.
type reading struct {
	Values
	docs map[string]any // outputs by id of the node; the inputs under ""
}

func read(v Values) *reading { return &reading{v, map[string]any{}} }

// at is the value at a path; false if there is none.
func (r *reading) at(p path) (any, bool) {
	switch p.root {
	case rootRun:
		return r.RunID, r.RunID != ""
	case partIntent:
		intent := r.Nodes[p.node].Intent
		return intent, intent != ""
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

// decode decodes JSON and retains the spelling of numbers; nil if it is no JSON.
func decode(text json.RawMessage) any {
	v, _ := schemas.Decode(text)
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

// masked reports whether a policy hides a part of the value.
func masked(v any) bool {
	switch v := v.(type) {
	case string:
		return v == intents.Masked
	case []any:
		return slices.ContainsFunc(v, masked)
	case map[string]any:
		for _, x := range v {
			if masked(x) {
				return true
			}
		}
	}
	return false
}

// eachLeaf returns the value with each of its leaves, which have no members, replaced.
func eachLeaf(v any, replace func(leaf any) any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = eachLeaf(v[i], replace)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = eachLeaf(v[name], replace)
		}
		return out
	}
	return replace(v)
}

// handedOn converts a leaf of a foreign value for an intent: a whole number beyond the exact ones of
// RFC 8785, or a number that no double approximates, becomes the text of its digits; another number
// becomes the nearest double, as its readers take it.
func handedOn(leaf any) any {
	n, is := leaf.(json.Number)
	if !is {
		return leaf
	}
	if _, err := intents.Canonical([]byte(n)); err == nil {
		return n
	}
	f, err := n.Float64()
	switch {
	case err != nil, f != 0 && !strings.ContainsAny(n.String(), ".eE"):
		return n.String()
	case f == 0: // -0, or too small for a double
		return 0
	}
	return f
}

// canonical JSON of a value.
func canonical(v any) (json.RawMessage, error) {
	text, err := intents.MarshalPlain(v)
	if err != nil {
		return nil, err
	}
	return intents.Canonical(text)
}
