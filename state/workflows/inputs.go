package workflows

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/schemas"
)

// filledIn is the member of a skill's input that its executor fills in.
const filledIn = "/principal"

// CheckInput checks the literal part of a function's input against the schema of its skill.
// Values of templates are unknown before the node begins, so they and the values that contain
// them are not checked, except for the names of members, nor are rules that could depend on
// them; an unusable schema checks nothing either. Pointers lead into the node.
func (n Node) CheckInput(schema json.RawMessage) (faults Faults) {
	if n.Type != Function || n.From != nil {
		return nil
	}
	input, open := any(map[string]any{}), []string{}
	if n.Inputs != nil {
		input = decode(n.Inputs)
	}
	input, _ = templates(input, "", func(text, pointer string) (any, *Fault) {
		list, _ := parts(text) // its own faults are reported elsewhere
		plain := ""
		for _, p := range list {
			if plain += p.text; p.path != nil {
				open = append(open, pointer)
			}
		}
		return plain, nil
	})
	var err error
	if len(open) > 0 {
		if schema, err = canonical(certain(decode(schema))); err != nil {
			return nil //nolint:nilerr // as said above
		}
	}
	s, err := schemas.Compile(schema)
	if err != nil {
		return nil //nolint:nilerr // as said above
	}
	text, err := canonical(input)
	if err != nil {
		return nil //nolint:nilerr // it is told with the intent's arguments
	}
	for _, v := range s.ValidateBytes(text) {
		if v.Pointer != filledIn && (v.Reason == schemas.UnknownMember || !holds(v.Pointer, open)) {
			faults = append(faults, Fault{Pointer: "/inputs" + v.Pointer, Reason: v.Reason})
		}
	}
	return faults
}

// holds reports whether any of the pointers leads to a place or into it.
func holds(place string, pointers []string) bool {
	for _, p := range pointers {
		if p == place || strings.HasPrefix(p, place+"/") {
			return true
		}
	}
	return false
}

// uncertain are keywords whose verdict on one member may come from the value of another.
var uncertain = []string{
	"if", "then", "else", "not", "anyOf", "oneOf", "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems",
	"$dynamicRef", "$recursiveRef",
}

// certain is a schema without them: its verdict on a literal holds whatever the other values
// are.
func certain(schema any) any {
	in, is := schema.(map[string]any)
	if !is {
		return schema
	}
	out := maps.Clone(in)
	for name, v := range in {
		switch {
		case slices.Contains(uncertain, name):
			delete(out, name)
		case slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions"}, name):
			if members, is := v.(map[string]any); is {
				members = maps.Clone(members)
				for k := range members {
					members[k] = certain(members[k])
				}
				out[name] = members
			}
		case slices.Contains([]string{"items", "additionalItems", "additionalProperties", "propertyNames", "allOf", "prefixItems"}, name):
			if list, is := v.([]any); is {
				all := make([]any, len(list))
				for i := range list {
					all[i] = certain(list[i])
				}
				out[name] = all
			} else {
				out[name] = certain(v)
			}
		}
	}
	return out
}
