package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"sync"

	"aob.dev/writ/schemas"
)

// stepSchema is a Step. input_from_step may be missing, meaning 0.
const stepSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["step", "task", "skills", "return_spec"],
  "properties": {
    "step": {"type": "integer", "minimum": 1, "description": "Number of the step."},
    "task": {"type": "string", "minLength": 1, "description": "What the step does, understandable on its own."},
    "skills": {"type": ["array", "null"], "items": {"type": "string"}, "description": "Names of the skills that the step may call; empty for none."},
    "input_from_step": {"type": "integer", "minimum": 0, "description": "The step whose result this step works on; 0 for none."},
    "return_spec": {
      "type": "object",
      "additionalProperties": false,
      "required": ["shape", "reason"],
      "properties": {
        "shape": {"type": "string", "minLength": 1, "description": "Shape of the result, such as array<{place: string, magnitude: number}>."},
        "reason": {"type": "string", "description": "Why the task needs it."}
      }
    }
  }
}`

// outputSchemas are the outputs of the thoughts: what Think accepts from any
// model. An absent list may be null, as Go writes it. For a remote model they
// are made strict by strictSchema.
var outputSchemas = map[Purpose]string{
	SelectSkills: `{
  "type": "object",
  "additionalProperties": false,
  "required": ["skills"],
  "properties": {
    "skills": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 6, "description": "Names of candidates, best first; empty when none fits."}
  }
}`,
	WritePlan: `{
  "type": "object",
  "additionalProperties": false,
  "required": ["feasible", "reason", "steps"],
  "properties": {
    "feasible": {"type": "boolean", "description": "Whether the skills can do the task."},
    "reason": {"type": "string", "description": "Why, in one sentence."},
    "steps": {"type": ["array", "null"], "items": ` + stepSchema + `, "maxItems": 10}
  }
}`,
	ChooseAction: `{
  "type": "object",
  "additionalProperties": false,
  "required": ["action", "skill", "input", "reason", "suggestion"],
  "properties": {
    "action": {"type": "string", "enum": ["call", "extract", "finish", "insufficient"]},
    "skill": {"type": "string", "description": "Skill to call; empty for other actions."},
    "input": {"type": ["object", "null"], "description": "Input of the skill, satisfying its input schema; {} for other actions."},
    "reason": {"type": "string", "description": "Why, in one sentence."},
    "suggestion": {"type": "string", "description": "With insufficient: what could be tried instead; else empty."}
  }
}`,
	WriteScript: `{
  "type": "object",
  "additionalProperties": false,
  "required": ["script"],
  "properties": {
    "script": {"type": "string", "minLength": 1, "description": "Python 3 source text."}
  }
}`,
	Compose: `{
  "type": "object",
  "additionalProperties": false,
  "required": ["response"],
  "properties": {
    "response": {"type": "string", "minLength": 1, "description": "The answer for the user, in Markdown."}
  }
}`,
}

// OutputSchema is the JSON Schema (2020-12) of a thought's output; nil for a
// purpose that this package does not declare.
func OutputSchema(p Purpose) json.RawMessage {
	s, ok := outputSchemas[p]
	if !ok {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		panic(err) // a constant of this package
	}
	return b.Bytes()
}

// compiledOutputs are the output schemas, compiled once.
var compiledOutputs = sync.OnceValues(func() (map[Purpose]*schemas.Schema, error) {
	all := make(map[Purpose]*schemas.Schema, len(outputSchemas))
	for p := range outputSchemas {
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
