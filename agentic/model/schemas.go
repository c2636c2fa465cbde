package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"sync"

	"aob.dev/writ/schemas"
)

// purposes are the thoughts, each with its prompt and its output schema in prompts.
var purposes = []Purpose{SelectSkills, WritePlan, ChooseAction, WriteScript, Compose}

// OutputSchema is the JSON Schema (2020-12) of a thought's output, which Think
// holds every model to; nil for a purpose that this package does not declare. A
// list may be null, as Go writes an empty one, and a step's input_from_step may
// be missing, meaning 0. For a remote model strictSchema makes it strict.
func OutputSchema(p Purpose) json.RawMessage {
	s, err := promptFiles.ReadFile("prompts/" + string(p) + ".json")
	if err != nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, s); err != nil {
		panic(err) // a file of this package
	}
	return b.Bytes()
}

// compiledOutputs are the output schemas, compiled once.
var compiledOutputs = sync.OnceValues(func() (map[Purpose]*schemas.Schema, error) {
	all := make(map[Purpose]*schemas.Schema, len(purposes))
	for _, p := range purposes {
		s, err := schemas.Compile(OutputSchema(p))
		if err != nil {
			return nil, fmt.Errorf("output of %s: %w", p, err)
		}
		all[p] = s
	}
	return all, nil
})

// maxViolations is how many violations a model is told.
const maxViolations = 10

// outputViolations says what is wrong with a document, as "pointer: reason";
// nil means that it satisfies the schema. No value of the document is quoted.
func outputViolations(s *schemas.Schema, doc []byte) []string {
	var found []string
	for _, v := range s.ValidateBytes(doc) {
		if len(found) < maxViolations {
			found = append(found, cmp.Or(v.Pointer, "/")+": "+v.Reason)
		}
	}
	return found
}
