package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
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

// encoded is a request as it is sent.
type encoded struct {
	params   openai.ChatCompletionNewParams
	body     []byte
	streamed bool
}

// encode converts r for the chat completions API, with adaptations.
func (o *OpenAI) encode(r Request, as adaptations) (encoded, error) {
	e := encoded{streamed: as&noStream == 0}
	p := &e.params
	p.Model = o.cfg.Model
	if e.streamed && as&noStreamOptions == 0 {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	c := conversation{model: o.Name(), as: as, shows: o.cfg.Images, ids: make(map[string]string)}
	for _, m := range c.turns(r) {
		sent, err := c.message(m)
		if err != nil {
			return e, err
		}
		p.Messages = append(p.Messages, sent)
	}
	for _, t := range r.Tools {
		parameters, err := parameters(t.Schema, as&plainSchemas != 0)
		if err != nil {
			return e, fmt.Errorf("schema of the tool %s: %w", t.Name, err)
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(visible.Cut(t.Description, maxDescription)), Parameters: parameters,
		}))
	}
	o.options(r, as, p)
	var err error
	e.body, err = json.Marshal(p)
	return e, err
}

// options sets the optional parameters that the model accepts. The operator's limits bound those of
// the request.
func (o *OpenAI) options(r Request, as adaptations, p *openai.ChatCompletionNewParams) {
	if len(r.Tools) > 0 && as&noChoice == 0 {
		choice := string(cmp.Or(r.Choice, "auto"))
		if as&freeChoice != 0 {
			choice = "auto"
		}
		p.ToolChoice.OfAuto = openai.String(choice)
	}
	parallel := o.cfg.Parallel
	if r.Parallel != nil && (parallel == nil || *parallel) {
		parallel = r.Parallel
	}
	if parallel != nil && len(r.Tools) > 0 && as&noParallel == 0 {
		p.ParallelToolCalls = openai.Bool(*parallel)
	}
	if r.Temperature != nil && as&noTemperature == 0 {
		p.Temperature = openai.Float(*r.Temperature)
	}
	if as&noStop == 0 {
		p.Stop.OfStringArray = r.Stop
	}
	most := cmp.Or(r.MaxTokens, o.cfg.MaxTokens)
	if o.cfg.MaxTokens > 0 {
		most = min(most, o.cfg.MaxTokens)
	}
	switch {
	case most == 0 || as&noMaxTokens != 0:
	case as&completionTokens != 0:
		p.MaxCompletionTokens = openai.Int(int64(most))
	default:
		p.MaxTokens = openai.Int(int64(most))
	}
	effort := cmp.Or(r.Effort, o.cfg.Effort)
	if at := slices.Index(Efforts, o.cfg.Effort); at >= 0 {
		effort = Efforts[min(at, max(0, slices.Index(Efforts, effort)))]
	}
	switch {
	case as&effortNone != 0 && len(r.Tools) > 0:
		p.ReasoningEffort = shared.ReasoningEffortNone
	case as&noEffort == 0:
		p.ReasoningEffort = shared.ReasoningEffort(effort)
	}
}

// Efforts of thinking, the least first.
var Efforts = []string{"low", "medium", "high"}

// conversation converts messages for one model.
type conversation struct {
	model string
	as    adaptations
	shows bool              // images of results
	ids   map[string]string // ids of calls as they are sent
}

// turns returns the messages of a request, the system prompt first.
func (c *conversation) turns(r Request) []Message {
	system, rest := r.System, r.Messages
	for len(rest) > 0 && rest[0].Role == RoleSystem { // some servers accept one system message, and only as the first
		system += "\n\n" + rest[0].Text
		rest = rest[1:]
	}
	var all []Message
	if system != "" {
		all = append(all, Message{Role: RoleSystem, Text: strings.TrimPrefix(system, "\n\n")})
	}
	if c.as&strictTurns == 0 {
		return append(all, rest...)
	}
	for _, m := range rest { // user and assistant alternate, and results are followed by an assistant
		if m.Role == RoleSystem {
			m.Role = RoleUser
		}
		last := len(all) - 1
		switch {
		case last >= 0 && all[last].Role == m.Role && m.Role == RoleUser:
			all[last].Text += "\n\n" + strings.TrimPrefix(m.Note+"\n\n", "\n\n") + m.Text
			all[last].Images = append(slices.Clip(all[last].Images), m.Images...)
			all[last].Shown = append(slices.Clip(all[last].Shown), m.Shown...)
			continue
		case last >= 0 && all[last].Role == m.Role && m.Role == RoleAssistant && len(all[last].Calls) == 0:
			m.Text = all[last].Text + "\n\n" + m.Text
			all = all[:last]
		case last >= 0 && all[last].Role == RoleTool && m.Role == RoleUser:
			all = append(all, Message{Role: RoleAssistant, Text: "I have the results."})
		}
		all = append(all, m)
	}
	return all
}

// text returns a text that may be sent.
func (c *conversation) text(s string) string {
	if c.as&noBlanks != 0 && strings.TrimSpace(s) == "" {
		return "(empty)"
	}
	return s
}

func (c *conversation) message(m Message) (openai.ChatCompletionMessageParamUnion, error) {
	switch m.Role {
	case RoleSystem:
		return openai.SystemMessage(c.text(m.Text)), nil
	case RoleUser:
		return c.user(m), nil
	case RoleTool:
		return openai.ToolMessage(c.text(m.Text), cmp.Or(c.ids[m.CallID], plainID(m.CallID))), nil
	case RoleAssistant:
		return c.assistant(m), nil
	}
	return openai.ChatCompletionMessageParamUnion{}, fmt.Errorf("no message has the role %q", m.Role)
}

func (c *conversation) user(m Message) openai.ChatCompletionMessageParamUnion {
	if m.Note != "" {
		m.Text = m.Note + "\n\n" + m.Text
	}
	switch {
	case c.shows:
		m.Images = append(slices.Clip(m.Images), m.Shown...)
	case len(m.Shown) > 0:
		m.Text += "\n(left out: this model is not set to take images)"
	}
	if len(m.Images) == 0 || c.as&noImages != 0 {
		if len(m.Images) > 0 {
			m.Text = strings.TrimSpace(fmt.Sprintf("%s\n[%d images, which you cannot see]", m.Text, len(m.Images)))
		}
		return openai.UserMessage(c.text(m.Text))
	}
	parts := []openai.ChatCompletionContentPartUnionParam{}
	if m.Text != "" {
		parts = append(parts, openai.TextContentPart(m.Text))
	}
	for _, url := range m.Images {
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url}))
	}
	return openai.UserMessage(parts)
}

// assistant returns a message with its calls. What only its model can read goes to that model
// alone.
func (c *conversation) assistant(m Message) openai.ChatCompletionMessageParamUnion {
	sent := openai.AssistantMessage(c.text(m.Text))
	if m.Text == "" && len(m.Calls) > 0 && c.as&emptyContent == 0 {
		sent.OfAssistant.Content = openai.ChatCompletionAssistantMessageParamContentUnion{}
	}
	own := m.Opaque != nil && m.Opaque.Model == c.model
	extra := map[string]any{}
	if own {
		for name, v := range m.Opaque.Members {
			if c.as&noThoughts == 0 || !strings.HasPrefix(name, "reasoning") {
				extra[name] = v
			}
		}
	}
	if extra[thoughts] == nil && c.as&emptyThoughts != 0 {
		extra[thoughts] = ""
	}
	if len(extra) > 0 {
		sent.OfAssistant.SetExtraFields(extra)
	}
	for i, call := range m.Calls {
		id := call.ID
		if !own || c.as&plainIDs != 0 {
			id = plainID(id)
		}
		c.ids[call.ID] = id
		f := openai.ChatCompletionMessageFunctionToolCallParam{
			ID:       id,
			Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: wireName(call.Name), Arguments: wireArguments(call.Arguments)},
		}
		members := map[string]any{}
		if own && i < len(m.Opaque.Calls) {
			for name, v := range m.Opaque.Calls[i] {
				members[name] = v
			}
		}
		if members[extraContent] == nil && c.as&anySignature != 0 {
			members[extraContent] = json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)
		}
		if len(members) > 0 {
			f.SetExtraFields(members)
		}
		sent.OfAssistant.ToolCalls = append(sent.OfAssistant.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &f})
	}
	return sent
}

// Members with which servers send what only their models can read.
const (
	thoughts     = "reasoning_content"
	extraContent = "extra_content"
)

var ninePlain = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)

// plainID returns an id of nine letters or digits, which every server accepts, for one that
// another model made.
func plainID(id string) string {
	if ninePlain.MatchString(id) {
		return id
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	digits := fmt.Sprintf("%09s", strconv.FormatUint(h.Sum64(), 36))
	return digits[len(digits)-9:]
}

// parameters converts a schema of arguments for servers: an object with its members listed, and
// no alternatives at the top, or plain at every depth. The caller checks the arguments against the
// schema itself.
func parameters(schema json.RawMessage, plain bool) (shared.FunctionParameters, error) {
	var s map[string]json.RawMessage
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &s); err != nil {
			return nil, err
		}
	}
	if plain {
		if simple := plainSchema(schema); simple["properties"] != nil {
			return simple, nil
		}
		return nil, nil //nolint:nilnil // some servers refuse an object without members
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
