package workflows

import (
	"encoding/json"
	"strings"

	"aob.dev/writ/schemas"
)

// filledIn is the member of a skill's input that its executor fills in.
const filledIn = "/principal"

// CheckInput checks what of a function's input is plain text against the schema of its
// skill. Values of templates are not known before the node begins, so nothing is said of
// them, nor of what holds them, but for the names of members; a schema that cannot be used says nothing either. Pointers
// lead into the node.
func (n Node) CheckInput(schema json.RawMessage) (faults Faults) {
	if n.Type != Function || n.From != nil {
		return nil
	}
	s, err := schemas.Compile(schema)
	if err != nil {
		return nil //nolint:nilerr // as said above
	}
	input, open := any(map[string]any{}), []string{}
	if n.Inputs != nil {
		input = decode(n.Inputs)
	}
	_, _ = templates(input, "", func(text, pointer string) (any, *Fault) {
		list, _ := parts(text) // its own faults are told by others
		for _, p := range list {
			if p.path != nil {
				open = append(open, pointer)
			}
		}
		return text, nil
	})
	text, err := canonical(input)
	if err != nil {
		return nil //nolint:nilerr // it is told with the order's arguments
	}
	for _, v := range s.ValidateBytes(text) {
		if v.Pointer != filledIn && (v.Reason == schemas.UnknownMember || !holds(v.Pointer, open)) {
			faults = append(faults, Fault{Pointer: "/inputs" + v.Pointer, Reason: v.Reason})
		}
	}
	return faults
}

// holds says whether any of the pointers leads to a place or into it.
func holds(place string, pointers []string) bool {
	for _, p := range pointers {
		if p == place || strings.HasPrefix(p, place+"/") {
			return true
		}
	}
	return false
}
