package offline

import (
	"encoding/json"
	"regexp"
	"strings"

	"aob.dev/writ/agentic/model"
)

// conversation is a request as far as it is understood: the last message of the user
// and what was called since. What came before it is history, which is not read.
type conversation struct {
	blocks map[string]string // JSON by name, such as [Skills]
	task   string
	tools  []model.Tool
	calls  []exchange
}

// exchange is a call with its result.
type exchange struct {
	model.Call
	result
}

// result is what a tool answers: a value with its label, a sample of one that is
// too large to show, or what is wrong with the call.
type result struct {
	Label      string          `json:"label"`
	Result     json.RawMessage `json:"result"`
	SizeBytes  int64           `json:"size_bytes"` // of a large value
	Skills     []skill         `json:"skills"`     // of load_skill
	Violations []string        `json:"violations"`
	Error      *struct {
		Code   string `json:"code"`
		Reason string `json:"reason"`
	} `json:"error"`
}

// skill is a manifest: what the skill server declared. Schemas are JSON Schema.
type skill struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Effect       string          `json:"effect"`
	tool         string          // its name as a tool
}

func understand(r model.Request) *conversation {
	c := &conversation{tools: r.Tools}
	for _, m := range r.Messages {
		switch m.Role {
		case model.RoleUser:
			c.calls = nil
			c.read(m.Text)
		case model.RoleAssistant:
			for _, call := range m.Calls {
				c.calls = append(c.calls, exchange{Call: call})
			}
		case model.RoleTool:
			for i := range c.calls {
				if x := &c.calls[i]; x.ID == m.CallID {
					_ = json.Unmarshal([]byte(m.Text), &x.result) // what is no result is one that says nothing
				}
			}
		case model.RoleSystem:
		}
	}
	return c
}

var blockName = regexp.MustCompile(`^\[[A-Z][a-z]*\]$`)

// read takes the blocks of a message: a line with the name, a line of JSON, an
// empty line. The last one is [Task], whose text goes on to the end. A message
// without it is the task as a whole.
func (c *conversation) read(text string) {
	c.blocks, c.task = nil, text
	blocks := map[string]string{}
	for rest := text; ; {
		name, body, _ := strings.Cut(rest, "\n")
		if name == "[Task]" {
			c.blocks, c.task = blocks, body
			return
		}
		if !blockName.MatchString(name) {
			return
		}
		blocks[name], rest, _ = strings.Cut(body, "\n\n")
	}
}

// block reads a block that must be there.
func (c *conversation) block(name string, into any) error {
	if err := json.Unmarshal([]byte(c.blocks[name]), into); err != nil {
		return &model.Error{Reason: "the request has no " + name + " that can be read", Err: err}
	}
	return nil
}

// wrong says what is wrong with a call; empty: nothing.
func (r *result) wrong() string {
	switch {
	case r.Error != nil:
		return r.Error.Code + ": " + r.Error.Reason
	case len(r.Violations) > 0:
		return r.Violations[0]
	}
	return ""
}

var (
	// declared is how the description of a skill's tool ends. What a skill's own text
	// says of effects stands before it.
	declared = regexp.MustCompile(`(?s)^(.*)\nEffect: (\w+)\.(?:\nReturns: ([^\n]*))?\s*$`)
	notWire  = regexp.MustCompile(`[^A-Za-z0-9_-]`)
)

// skills are the tools that are skills, under their own names where those are known.
func (c *conversation) skills(names []string) []skill {
	var out []skill
	for _, t := range c.tools {
		m := declared.FindStringSubmatch("\n" + t.Description)
		if m == nil {
			continue
		}
		s := skill{Name: t.Name, Description: strings.TrimSpace(m[1]), InputSchema: t.Schema, OutputSchema: json.RawMessage(m[3]), Effect: m[2], tool: t.Name}
		for _, name := range names {
			if notWire.ReplaceAllString(name, "_") == t.Name {
				s.Name = name
			}
		}
		out = append(out, s)
	}
	return out
}
