package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

// Limits of the chat completions API.
const (
	maxToolName    = 64
	maxDescription = 1024
)

// params is r as the chat completions API takes it.
func (o *OpenAI) params(r Request) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: o.cfg.Model}
	system, rest := r.System, r.Messages
	for len(rest) > 0 && rest[0].Role == RoleSystem { // some servers take one system message, and only as the first
		system += "\n\n" + rest[0].Text
		rest = rest[1:]
	}
	if system != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(strings.TrimPrefix(system, "\n\n")))
	}
	for _, m := range rest {
		sent, err := message(m)
		if err != nil {
			return p, err
		}
		p.Messages = append(p.Messages, sent)
	}
	for _, t := range r.Tools {
		parameters, err := parameters(t.Schema)
		if err != nil {
			return p, fmt.Errorf("schema of the tool %s: %w", t.Name, err)
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(shorten(t.Description, maxDescription)), Parameters: parameters,
		}))
	}
	if len(r.Tools) > 0 {
		choice := "auto"
		if r.Choice == ChoiceRequired {
			choice = "required"
		}
		p.ToolChoice.OfAuto = openai.String(choice)
	}
	if r.Temperature != nil && !o.noTemperature.Load() {
		p.Temperature = openai.Float(*r.Temperature)
	}
	p.Stop.OfStringArray = r.Stop
	return p, nil
}

func message(m Message) (openai.ChatCompletionMessageParamUnion, error) {
	switch m.Role {
	case RoleSystem:
		return openai.SystemMessage(m.Text), nil
	case RoleUser:
		return openai.UserMessage(m.Text), nil
	case RoleTool:
		return openai.ToolMessage(m.Text, m.CallID), nil
	case RoleAssistant:
		sent := openai.AssistantMessage(m.Text)
		if m.Text == "" && len(m.Calls) > 0 {
			sent.OfAssistant.Content = openai.ChatCompletionAssistantMessageParamContentUnion{}
		}
		for _, c := range m.Calls {
			sent.OfAssistant.ToolCalls = append(sent.OfAssistant.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID:       c.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: wireName(c.Name), Arguments: wireArguments(c.Arguments)},
				},
			})
		}
		return sent, nil
	}
	return openai.ChatCompletionMessageParamUnion{}, fmt.Errorf("no message has the role %q", m.Role)
}

// parameters is a schema of arguments as servers take it: an object with its members
// listed, and no alternatives at the top. Who made the request checks the arguments by
// the schema itself.
func parameters(schema json.RawMessage) (shared.FunctionParameters, error) {
	var s map[string]json.RawMessage
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &s); err != nil {
			return nil, err
		}
	}
	p := shared.FunctionParameters{"properties": json.RawMessage("{}")}
	for name, v := range s {
		p[name] = v
	}
	p["type"] = "object"
	for _, name := range []string{"$schema", "$id", "oneOf", "anyOf", "allOf", "enum", "not"} {
		delete(p, name)
	}
	return p, nil
}

// wireName is the name of a call as it may stand in a message. A model may have made a
// name up, and a server refuses the whole conversation for one that no tool can have.
func wireName(name string) string {
	if name == "" {
		return "_"
	}
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxToolName)]
}

// wireArguments is what a model wrote as arguments as it may stand in a message: some
// servers read them, and refuse the whole conversation for what is no JSON object.
func wireArguments(written string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(written), &object) == nil && object != nil {
		return written
	}
	b, err := json.Marshal(map[string]string{"not_json": written})
	if err != nil {
		return "{}"
	}
	return string(b)
}

// shorten cuts s to at most n bytes, between characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
