package memory

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Bounds of an inferred shape: enough to see what is wrong.
const (
	maxShape    = 2 << 10 // bytes
	maxDepth    = 4
	maxMembers  = 24
	maxElements = 64 // of an array that are read
	maxKinds    = 3  // of elements; an array of more is array<any>
)

// names are the member names that a shape shows; any other may be data.
var names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// infer describes the shape of a value that was decoded with json.Number.
func infer(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return "number"
		}
		return "integer"
	case []any:
		return inferArray(v, depth)
	case map[string]any:
		return inferObject(v, depth)
	}
	return "any"
}

func inferArray(v []any, depth int) string {
	if len(v) == 0 || depth == maxDepth {
		return "array"
	}
	var kinds []string
	for _, e := range v[:min(len(v), maxElements)] {
		if kind := infer(e, depth+1); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > maxKinds {
		return "array<any>"
	}
	return "array<" + strings.Join(kinds, "|") + ">"
}

func inferObject(v map[string]any, depth int) string {
	if depth == maxDepth {
		return "object"
	}
	var members []string
	hidden := false
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if len(members) == maxMembers || !names.MatchString(name) {
			hidden = true
			continue
		}
		members = append(members, name+": "+infer(v[name], depth+1))
	}
	if hidden {
		members = append(members, "…")
	}
	return "{" + strings.Join(members, ", ") + "}"
}
