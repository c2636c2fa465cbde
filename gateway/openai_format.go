package gateway

import (
	"encoding/json"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/schemas"
)

// answerFormat is the form of an answer that is no plain text: one JSON object, of a schema if there
// is one.
type answerFormat struct {
	schema *schemas.Schema
	asks   string // what the agents are told
}

// maxAnswerSchema bounds the schema of an answer, which is part of the instructions, in bytes.
const maxAnswerSchema = 3 << 10

// readFormat reads response_format of a completion, or text.format of a response; nil: plain text.
func readFormat(raw json.RawMessage, at string) (*answerFormat, error) {
	var f struct {
		Type   string
		Schema json.RawMessage
		Nested struct{ Schema json.RawMessage } `json:"json_schema"`
	}
	if len(raw) > 0 && json.Unmarshal(raw, &f) != nil {
		return nil, problem.New(intents.SchemaInvalid, at, "must be an object with a type")
	}
	out := answerFormat{asks: "Write the whole answer as one JSON object, with no text around it."}
	switch source := append(f.Nested.Schema, f.Schema...); {
	case f.Type == "", f.Type == "text":
		return nil, nil //nolint:nilnil // plain text
	case f.Type == "json_object":
		return &out, nil
	case f.Type != "json_schema":
		return nil, problem.New(intents.SchemaInvalid, at, "type must be text, json_object or json_schema")
	case len(source) > maxAnswerSchema:
		return nil, problem.New(intents.SchemaInvalid, at, "the schema has more than 3 KiB")
	default:
		var err error
		if out.schema, err = schemas.Compile(source); err != nil {
			return nil, problem.New(intents.SchemaInvalid, at, "not a JSON Schema: "+err.Error())
		}
		out.asks += " It must match this JSON Schema: " + string(source)
		return &out, nil
	}
}

// write returns a text in the form of the answer. What is no answer, such as that people must
// approve a call, and an answer in words, become the member answer of an object; where a schema
// demands another form, the error has the text.
func (f *answerFormat) write(text string, answers bool) (string, error) {
	if f == nil {
		return text, nil
	}
	doc := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(doc, "```"); ok {
		doc = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```"))
	}
	var object map[string]json.RawMessage
	isObject := answers && json.Unmarshal([]byte(doc), &object) == nil && object != nil
	switch {
	case isObject && (f.schema == nil || len(f.schema.ValidateBytes([]byte(doc))) == 0):
		return doc, nil
	case f.schema != nil:
		return "", problem.New(intents.ContractViolation, "", "there is no answer of the schema that was asked for: "+text)
	default:
		raw, err := json.Marshal(map[string]string{"answer": text})
		return string(raw), err
	}
}
