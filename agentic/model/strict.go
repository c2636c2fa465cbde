package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
)

// Strict mode of OpenAI-compatible servers accepts a part of JSON Schema:
// every object lists its members, all required and no others, so an object of
// free form cannot be said. strictSchema rewrites an output schema for it, and
// [looseOutput] turns an answer back. Free-form objects travel as JSON texts.

// unsupported are keywords that strict mode refuses; Think checks them anyway.
var unsupported = []string{"$schema", "$id", "minLength", "maxLength", "default", "examples", "title"}

// textOfObject is appended to the description of a free-form object.
const textOfObject = "One JSON object, written as JSON text."

// strictSchema returns schema as strict mode wants it.
func strictSchema(schema json.RawMessage) (map[string]any, error) {
	var s map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	makeStrict(s)
	return s, nil
}

func makeStrict(s map[string]any) {
	for _, k := range unsupported {
		delete(s, k)
	}
	dropNull(s)
	if freeForm(s) {
		about, _ := s["description"].(string)
		if about != "" {
			about += " "
		}
		clear(s)
		s["type"], s["description"] = "string", about+textOfObject
		return
	}
	if members, ok := s["properties"].(map[string]any); ok {
		for _, m := range members {
			if m, ok := m.(map[string]any); ok {
				makeStrict(m)
			}
		}
		s["required"] = slices.Sorted(maps.Keys(members))
		s["additionalProperties"] = false
	}
	if items, ok := s["items"].(map[string]any); ok {
		makeStrict(items)
	}
}

// dropNull leaves the one type of a nullable schema: null is for what a Go
// model leaves out, and a remote one leaves nothing out.
func dropNull(s map[string]any) {
	types, ok := s["type"].([]any)
	if !ok {
		return
	}
	types = slices.DeleteFunc(types, func(t any) bool { return t == "null" })
	if len(types) == 1 {
		s["type"] = types[0]
	}
}

func freeForm(s map[string]any) bool {
	_, listed := s["properties"]
	return s["type"] == "object" && !listed
}

// looseOutput turns the JSON texts of an answer under the strict form of
// schema back into objects. A text that is no JSON object stays, and fails
// validation later. Numbers keep their digits.
func looseOutput(schema, answer json.RawMessage) (json.RawMessage, error) {
	var s map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON document")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(loosen(s, v)); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func loosen(s map[string]any, v any) any {
	dropNull(s)
	switch v := v.(type) {
	case string:
		if !freeForm(s) {
			return v
		}
		text := strings.TrimSpace(v)
		switch {
		case text == "":
			return json.RawMessage("{}")
		case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
			return json.RawMessage(text)
		}
	case map[string]any:
		members, _ := s["properties"].(map[string]any)
		for name := range v {
			if m, ok := members[name].(map[string]any); ok {
				v[name] = loosen(m, v[name])
			}
		}
	case []any:
		if items, ok := s["items"].(map[string]any); ok {
			for i := range v {
				v[i] = loosen(items, v[i])
			}
		}
	}
	return v
}
