package model

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"aob.dev/writ/internal/visible"
)

// Limits of the chat completions API.
const (
	maxToolName    = 64
	maxDescription = 1024
)

// params converts r for the chat completions API.
func (o *OpenAI) params(r Request) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: o.cfg.Model}
	system, rest := r.System, r.Messages
	for len(rest) > 0 && rest[0].Role == RoleSystem { // some servers accept one system message, and only as the first
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
			Name: t.Name, Description: openai.String(visible.Cut(t.Description, maxDescription)), Parameters: parameters,
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

// parameters converts a schema of arguments for servers: an object with its members listed, and
// no alternatives at the top. The caller checks the arguments against the schema itself.
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

// wireName returns a tool name that may appear in a message. A model may have invented a name,
// and a server refuses the whole conversation if a name is not valid for a tool.
func wireName(name string) string {
	if name == "" {
		return "_"
	}
	name = notInName.ReplaceAllString(name, "_")
	return name[:min(len(name), maxToolName)]
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// wireArguments returns a model's arguments in a form that may appear in a message: some servers
// parse them, and refuse the whole conversation if they are not a JSON object.
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
