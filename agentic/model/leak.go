package model

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// A model that is not well adapted to its server writes calls of tools as text. Such text is
// never shown. A call in it is executed only if it is the whole reply and its tool changes
// nothing; otherwise the model is asked again.

// errLeaked means that a reply has a call as text.
var errLeaked = errors.New("call as text")

// callMarks begin a call that is written as text.
var callMarks = []string{"<tool_call>", "<tool_calls>", "<function=", "<function_calls>", "<invoke ", "<|tool_call", "<|python_tag|>", "[TOOL_CALLS]", "<｜tool▁call", "<｜DSML｜"}

// callWritten returns the index from where a text may be a call; from is where to look.
func callWritten(text string, from int) int {
	if from == 0 && maybeBareCall(text) {
		return 0
	}
	for i := from; i < len(text); i++ {
		if text[i] != '<' && text[i] != '[' {
			continue
		}
		for _, mark := range callMarks {
			if strings.HasPrefix(text[i:], mark) || strings.HasPrefix(mark, text[i:]) {
				return i
			}
		}
	}
	return len(text)
}

// maybeBareCall reports whether a text may be nothing but calls as JSON, with the name first.
func maybeBareCall(text string) bool {
	bare := strings.Map(func(c rune) rune {
		if strings.ContainsRune(" \t\r\n[", c) {
			return -1
		}
		return c
	}, text[:min(len(text), 100)])
	for _, fence := range []string{"```json", "```"} {
		if after, found := strings.CutPrefix(bare, fence); found {
			bare = after
			break
		}
	}
	const name = `{"name":"`
	return bare != "" && (strings.HasPrefix(bare, name) || strings.HasPrefix(name, bare) || strings.HasPrefix("```json", bare))
}

// leaked finds calls in the text that was held back. If they are the whole reply and may be
// executed, they become its calls; an error means that the model must be asked again.
func (r *reading) leaked() *Error {
	text := r.text.String()
	if r.held >= len(text) {
		return nil
	}
	calls, tools := writtenCalls(text[r.held:], r.tools)
	marked := slices.ContainsFunc(callMarks, func(m string) bool { return strings.HasPrefix(text[r.held:], m) }) &&
		slices.ContainsFunc(r.tools, func(t Tool) bool { return named(text[r.held:], t.Name) })
	if !marked && len(calls) == 0 {
		return nil
	}
	allowed := len(calls) > 0 && len(r.parts) == 0 && r.choice != ChoiceNone && strings.TrimSpace(text[:r.held]) == "" &&
		!slices.ContainsFunc(tools, func(t Tool) bool { return !t.Pure })
	if !allowed {
		if len(r.parts) > 0 { // the text is beside the calls
			r.cutText()
			return nil
		}
		return &Error{Reason: "the model wrote the call of a tool as text", Retryable: true, Err: errLeaked}
	}
	r.cutText()
	for i, c := range calls {
		p := &callParts{index: int64(i), name: c.Name}
		p.arguments.WriteString(c.Arguments)
		r.parts = append(r.parts, p)
	}
	return nil
}

// named reports whether a text names a tool as written calls do.
func named(text, tool string) bool {
	return slices.ContainsFunc([]string{`"`, "=", ">", "."}, func(before string) bool { return strings.Contains(text, before+tool) })
}

// cutText drops the text that was held back.
func (r *reading) cutText() {
	text := r.text.String()[:r.held]
	r.text.Reset()
	r.text.WriteString(text)
}

// writtenCalls reads a text that is nothing but calls of these tools, as JSON.
func writtenCalls(text string, tools []Tool) (calls []Call, called []Tool) {
	text = strings.NewReplacer("<tool_calls>", "", "</tool_calls>", "", "<tool_call>", "", "</tool_call>", "", "[TOOL_CALLS]", "", "<|python_tag|>", "", "```json", "", "```", "").Replace(text)
	d := json.NewDecoder(strings.NewReader(text))
	for d.More() {
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return nil, nil
		}
		var some []struct {
			Name                  string
			Arguments, Parameters json.RawMessage
		}
		if raw[0] != '[' {
			raw = slices.Concat([]byte("["), raw, []byte("]"))
		}
		if json.Unmarshal(raw, &some) != nil {
			return nil, nil
		}
		for _, c := range some {
			i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == c.Name })
			arguments := c.Arguments
			if arguments == nil {
				arguments = c.Parameters
			}
			if i < 0 || len(calls) == maxCalls {
				return nil, nil
			}
			calls, called = append(calls, Call{Name: c.Name, Arguments: string(arguments)}), append(called, tools[i])
		}
	}
	return calls, called
}

// unquoted returns arguments in which values that a model wrote as strings of JSON are values, as
// the schema wants them, and optional members that are null are left out. Everything else is as
// written.
func unquoted(arguments string, schema json.RawMessage) string {
	var inner string
	if json.Unmarshal([]byte(arguments), &inner) == nil && strings.TrimSpace(arguments) != "null" && json.Valid([]byte(inner)) {
		arguments = inner
	}
	if strings.TrimSpace(arguments) == "null" {
		return "{}"
	}
	p := plainer{left: maxPlainNodes}
	if json.Unmarshal(schema, &p.root) != nil {
		return arguments
	}
	if fixed, changed := p.unquote(json.RawMessage(arguments), p.root); changed {
		return string(fixed)
	}
	return arguments
}

// takes reports whether a schema takes values of a JSON type; one without types takes all.
func takes(s map[string]any, typ string) bool {
	switch t := s["type"].(type) {
	case string:
		return t == typ || t == "integer" && typ == "number"
	case []any:
		return slices.ContainsFunc(t, func(one any) bool { return takes(map[string]any{"type": one}, typ) })
	}
	return true
}

func (p *plainer) unquote(value json.RawMessage, s map[string]any) (fixed json.RawMessage, changed bool) {
	s = p.resolved(s)
	var text string
	if !takes(s, "string") && json.Unmarshal(value, &text) == nil && json.Valid([]byte(text)) && takes(s, jsonType(text)) {
		value, changed = json.RawMessage(strings.TrimSpace(text)), true
	}
	var members Members
	var list []json.RawMessage
	properties, _ := s["properties"].(map[string]any)
	items, _ := s["items"].(map[string]any)
	again := false
	switch {
	case len(properties) > 0 && json.Unmarshal(value, &members) == nil:
		required, _ := s["required"].([]any)
		for name, v := range members {
			sub, _ := properties[name].(map[string]any)
			if sub = p.resolved(sub); string(v) == "null" && sub["type"] != nil && !takes(sub, "null") && !slices.Contains(required, any(name)) {
				delete(members, name)
				again = true
			} else if v, inside := p.unquote(v, sub); inside {
				members[name], again = v, true
			}
		}
		if again {
			value, _ = json.Marshal(members) // its values were read
		}
	case len(items) > 0 && json.Unmarshal(value, &list) == nil:
		for i, v := range list {
			if v, inside := p.unquote(v, items); inside {
				list[i], again = v, true
			}
		}
		if again {
			value, _ = json.Marshal(list) // so were these
		}
	}
	return value, changed || again
}

// jsonType is the type of a valid JSON text.
func jsonType(text string) string {
	switch strings.TrimSpace(text)[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
