package workflows

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/schemas"
)

// principal is the member that the skills executor fills in itself.
const principal = "principal"

// CheckInput says how the literal inputs of a function break its skill's schema, with pointers
// into the node. What a template gives is not known: it is left open, and so is each rule of
// the schema that could depend on it. A schema that cannot be used says nothing.
func (n Node) CheckInput(schema json.RawMessage) Faults {
	if n.Type != Function || n.From != nil {
		return nil
	}
	const at = "/inputs"
	open := map[string]bool{} // pointers of what has templates, and of all that it is in
	leave := func(pointer string) {
		for ; pointer != ""; pointer = pointer[:strings.LastIndexByte(pointer, '/')] {
			open[pointer] = true
		}
	}
	var inputs any = map[string]any{}
	if n.Inputs != nil {
		inputs, _ = templates(decode(n.Inputs), at, func(s, pointer string) (any, *Fault) {
			list, _ := parts(s)
			text := ""
			for _, p := range list {
				if text += p.text; p.path != nil {
					leave(pointer)
				}
			}
			return text, nil
		})
	}
	tree, _ := decode(schema).(map[string]any)
	properties, _ := tree["properties"].(map[string]any)
	if object, is := inputs.(map[string]any); is && properties[principal] != nil {
		object[principal] = ""
		leave(at + "/" + principal)
	}
	var err error
	if len(open) > 0 {
		if schema, err = canonical(certain(tree)); err != nil {
			return nil
		}
	}
	text, err := canonical(inputs)
	if err != nil {
		return nil
	}
	s, err := schemas.Compile(schema)
	if err != nil {
		return nil
	}
	var faults Faults
	for _, v := range s.ValidateBytes(text) {
		if pointer := at + v.Pointer; !open[pointer] || v.Reason == schemas.UnknownMember {
			faults = append(faults, Fault{Pointer: pointer, Reason: v.Reason})
		}
	}
	return faults
}

// uncertain are keywords whose verdict on one member may come from the value of another.
var uncertain = []string{
	"if", "then", "else", "not", "anyOf", "oneOf", "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems",
	"$dynamicRef", "$recursiveRef",
}

// certain is a schema without them: what it says of a literal is so whatever else there is.
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
