package agentic

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// withoutOdd returns the arguments of a call without members that the tool does not know, and
// without a null for an optional member that cannot be null: models write both. dropped names the
// unknown ones. Only tools of this system and pure skills get this: for a skill that changes
// something, a misspelt dry_run must not become a change.
func withoutOdd(schema, args json.RawMessage) (rest json.RawMessage, dropped []string) {
	var s expected
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var value any
	if json.Unmarshal(schema, &s) != nil || d.Decode(&value) != nil {
		return args, nil
	}
	odd := s.tidy(value, "", &dropped)
	if !odd {
		return args, nil
	}
	return compact(value), dropped
}

// bounds are keywords that a model need not read: a call beyond them is answered with the bound.
var bounds = []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "pattern", "minProperties", "maxProperties"}

// withoutBounds returns the schema of a tool of this system as a model reads it.
func withoutBounds(schema json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	var drop func(v any, names bool)
	drop = func(v any, names bool) { // names: the members of v are names of the tool's own
		switch v := v.(type) {
		case map[string]any:
			for name, of := range v {
				if !names && slices.Contains(bounds, name) {
					delete(v, name)
					continue
				}
				drop(of, !names && name == "properties")
			}
		case []any:
			for _, of := range v {
				drop(of, false)
			}
		}
	}
	drop(v, false)
	return compact(v)
}

// expected is the part of a schema that says which members there are.
type expected struct {
	Type       json.RawMessage     `json:"type"`
	Properties map[string]expected `json:"properties"`
	Required   []string            `json:"required"`
	Items      *expected           `json:"items"`
	Additional json.RawMessage     `json:"additionalProperties"`
}

// UnmarshalJSON accepts schemas of other forms, such as true: they expect anything.
func (e *expected) UnmarshalJSON(raw []byte) error {
	type plain expected
	_ = json.Unmarshal(raw, (*plain)(e))
	return nil
}

// tidy removes odd members from a value, and reports whether there were any.
func (e *expected) tidy(value any, at string, dropped *[]string) (odd bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			of, known := e.Properties[name]
			switch {
			case !known && string(e.Additional) == "false":
				*dropped = append(*dropped, at+"/"+name)
				delete(v, name)
				odd = true
			case known && v[name] == nil && !slices.Contains(e.Required, name) && len(of.Type) > 0 && !bytes.Contains(of.Type, []byte(`"null"`)):
				delete(v, name)
				odd = true
			case known:
				odd = of.tidy(v[name], at+"/"+name, dropped) || odd
			}
		}
	case []any:
		for i := range v {
			if e.Items != nil {
				odd = e.Items.tidy(v[i], at, dropped) || odd
			}
		}
	}
	return odd
}
