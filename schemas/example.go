package schemas

import (
	_ "embed" // the examples are data
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed examples.json
var examplesFile []byte

var examples = sync.OnceValue(func() (all map[string]json.RawMessage) {
	if err := json.Unmarshal(examplesFile, &all); err != nil {
		panic(err) // embedded at build time; TestExamples fails first
	}
	return all
})

// Example is a value that the schema of an intent type's arguments accepts. Of a type that is not
// ours it is the first example of the schema itself; a schema without one gives an empty object,
// which it may refuse.
func (s *Schema) Example(typ string) (json.RawMessage, error) {
	if ours, ok := examples()[typ]; ok {
		return ours, nil
	}
	if given := target(s.compiled).Examples; len(given) > 0 {
		return json.Marshal(given[0])
	}
	return json.RawMessage(`{}`), nil
}

// Members lists the members that the schema names at a JSON Pointer into a document.
func (s *Schema) Members(pointer string) []string {
	at := target(s.compiled)
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" || at == nil {
			break
		}
		next := at.Properties[token]
		if next == nil {
			next = at.Items2020
		}
		at = target(next)
	}
	if at == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(at.Properties))
}

// target is the schema that a schema refers to, or the schema itself.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	if s != nil && s.Ref != nil {
		return target(s.Ref)
	}
	return s
}
