package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/intents"

	"aob.dev/writ/agentic/model"
)

// conversation is a request as far as it is understood: the last message of the user and the
// calls since. Earlier messages are history, which is not read.
type conversation struct {
	system string            // the prompt
	blocks map[string]string // JSON by name, such as [Skills]
	task   string
	tools  []model.Tool
	calls  []exchange
	err    error // a block that is missing or broken
}

func (c *conversation) offers(tool string) bool {
	return slices.ContainsFunc(c.tools, func(t model.Tool) bool { return t.Name == tool })
}

// exchange is a call with the tool's answer: a value with its label, a label and the size of a
// value that is too large to show, or the error of the call.
type exchange struct {
	model.Call `json:"-"`
	Label      string           `json:"label"`
	Result     json.RawMessage  `json:"result"`
	SizeBytes  int64            `json:"size_bytes"` // of a large value
	Skills     []skill          `json:"skills"`     // of load_skill
	Violations []string         `json:"violations"`
	Error      *intents.Refusal `json:"error"`
}

// skill is a skill as the planner reads it.
type skill struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Changes      bool            `json:"changes,omitempty"` // data
}

func understand(r model.Request) *conversation {
	c := &conversation{system: r.System, tools: r.Tools}
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
					_ = json.Unmarshal([]byte(m.Text), x) // an invalid result says nothing
				}
			}
		case model.RoleSystem:
		}
	}
	return c
}

// read reads the blocks of a message: a line with the name, a line of JSON, an empty line. The
// last one is [Task], whose text extends to the end. A message without it is the task as a whole.
func (c *conversation) read(text string) {
	blocks, task, ok := strings.Cut("\n"+text, "\n[Task]\n")
	if !ok {
		blocks, task = "", text
	}
	c.blocks, c.task = map[string]string{}, task
	for b := range strings.SplitSeq(blocks, "\n\n") {
		name, document, _ := strings.Cut(strings.TrimSpace(b), "\n")
		c.blocks[name] = document
	}
}

// block reads a required block.
func (c *conversation) block(name string, into any) {
	if err := json.Unmarshal([]byte(c.blocks[name]), into); err != nil {
		c.err = fmt.Errorf("%s: %w", name, err)
	}
}

// wrong returns the error of a call; empty: none.
func (x *exchange) wrong() string {
	if x.Error != nil {
		return string(x.Error.Code) + ": " + x.Error.Reason
	}
	return cmp.Or(x.Violations...)
}

// ownTools are those of this system that are no skills; there are others for each agent to ask.
var ownTools = []string{
	"find_relevant_skills", "load_skill", "plan", "exec_python", "read_lines", "write_memory", "insufficient",
	"action", "remind_me", "find_tools", "find_agents", "final_result",
}

// effects matches the note of a prompt that says which skills change data.
var effects = regexp.MustCompile(`(?m)^- (These change data, and may wait for approval: |Tools of servers change data, and may wait for approval, except: |Tools of servers may change data, and wait for approval\.)(.*)$`)

// changes reports whether a tool changes data, by the prompt.
func (c *conversation) changes(tool string) bool {
	m := effects.FindStringSubmatch(c.system)
	return m != nil && strings.HasPrefix(m[1], "These") == strings.Contains(m[2], "`"+tool+"`")
}

// skills returns the tools that are skills. Their output is in [Returns], if it is declared.
func (c *conversation) skills() []skill {
	var out []skill
	var returns []struct {
		Tool   string          `json:"tool"`
		Schema json.RawMessage `json:"schema"`
	}
	if c.blocks["[Returns]"] != "" {
		c.block("[Returns]", &returns)
	}
	for _, t := range c.tools {
		if slices.Contains(ownTools, t.Name) || strings.HasPrefix(t.Name, "ask_") {
			continue
		}
		s := skill{Name: t.Name, Description: t.Description, InputSchema: t.Schema, Changes: c.changes(t.Name)}
		for _, r := range returns {
			if r.Tool == t.Name {
				s.OutputSchema = r.Schema
			}
		}
		out = append(out, s)
	}
	return out
}
