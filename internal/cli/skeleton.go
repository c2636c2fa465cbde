package cli

import (
	"encoding/json"
	"errors"
	"strings"

	"aob.dev/writ/intents"
)

// skeleton makes arguments that a row's schema asks for: required members with
// the first value that their schema names, else an empty one of their type. What
// a pattern or a length demands is left to the author, and to lint.
func skeleton(r typeRow) (json.RawMessage, error) {
	var schema map[string]any
	if err := json.Unmarshal(r.Args, &schema); err != nil {
		return nil, err
	}
	return json.Marshal(specimen(schema, schema, 0))
}

// specimenDepth bounds schemas that refer to themselves.
const specimenDepth = 8

func specimen(root, s map[string]any, depth int) any {
	if ref, ok := s["$ref"].(string); ok && depth < specimenDepth {
		if to := resolved(root, ref); to != nil {
			return specimen(root, to, depth+1)
		}
	}
	for _, name := range []string{"const", "default"} {
		if v, ok := s[name]; ok {
			return v
		}
	}
	for _, name := range []string{"examples", "enum"} {
		if list, ok := s[name].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	typ, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok && len(list) > 0 {
		typ, _ = list[0].(string)
	}
	switch typ {
	case "string":
		return ""
	case "integer", "number":
		if least, ok := s["minimum"]; ok {
			return least
		}
		return 0
	case "boolean":
		return false
	case "array":
		return []any{}
	case "null":
		return nil
	}
	out := map[string]any{}
	if depth < specimenDepth {
		required(root, s, depth, out)
	}
	return out
}

// required fills in the required members; of alternatives the first.
func required(root, s map[string]any, depth int, out map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	names, _ := s["required"].([]any)
	if branches, ok := s["oneOf"].([]any); ok && len(branches) > 0 {
		if first, ok := branches[0].(map[string]any); ok {
			more, _ := first["required"].([]any)
			names = append(names, more...)
		}
	}
	for _, name := range names {
		name, _ := name.(string)
		member, _ := properties[name].(map[string]any)
		out[name] = specimen(root, member, depth+1)
	}
}

// resolved follows a reference within the document.
func resolved(root map[string]any, ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := root
	for token := range strings.SplitSeq(path, "/") {
		next, ok := at[token].(map[string]any)
		if !ok {
			return nil
		}
		at = next
	}
	return at
}

// canonicalObject is the canonical form of a JSON object.
func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	canonical, err := intents.Canonical(raw)
	if err != nil {
		return nil, err
	}
	if len(canonical) == 0 || canonical[0] != '{' {
		return nil, errors.New("must be a JSON object")
	}
	return canonical, nil
}
