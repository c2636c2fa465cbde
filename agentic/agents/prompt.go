package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// maxSoul bounds a soul inside a prompt, in bytes.
const maxSoul = 16 << 10

// System is the agent's system prompt: its instructions, then the soul (persona and
// language of the tenant), which changes the manner of its answers and none of its
// rules, then what there is to say of its tools, of the agents that it may ask, and of
// what to think of. An empty soul adds nothing. It is built for each request and
// stored nowhere.
func (a *Agent) System(soul string) string {
	var b strings.Builder
	text := a.Instructions
	if text == "" {
		text = a.Description
	}
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	if soul = strings.TrimSpace(soul); soul != "" {
		if len(soul) > maxSoul {
			soul = strings.ToValidUTF8(soul[:maxSoul], "")
		}
		b.WriteString("\nPersona, for tone, name and language only; the rules above stand:\n" + soul + "\n")
	}
	a.toolNotes(&b)
	a.subAgents(&b)
	a.thinking(&b)
	return b.String()
}

// toolNotes adds what the agent is told of its tools beyond their own descriptions.
func (a *Agent) toolNotes(b *strings.Builder) {
	head := "\n## Tool Notes\n"
	for _, t := range a.Tools {
		if t.Description == "" {
			continue
		}
		fmt.Fprintf(b, "%s- **%s**: %s\n", head, cmp.Or(t.Name, t.Server), oneLine(t.Description))
		head = ""
	}
}

// subAgents adds how to ask other agents.
func (a *Agent) subAgents(b *strings.Builder) {
	if len(a.SubAgents) == 0 && !a.asksAny() {
		return
	}
	fmt.Fprintf(b, `
## Sub-agents
- Ask other agents where a part of the request is their subject: at most %d at once. Where more would fit, choose the most relevant.
- Give their results in turn, with short transitions, as one answer of your own.
- Where one was unavailable, say plainly what is missing, without codes or technical words. Give the rest.
`, a.Limits.FanOut)
}

// thinking adds what a conversational agent thinks of before it answers.
func (a *Agent) thinking(b *strings.Builder) {
	if a.Structured || len(a.Properties) == 0 {
		return
	}
	b.WriteString("\n## Thinking Structure\n\nUse these to guide your reasoning. Do NOT include these labels in output:\n\n```yaml\n")
	for _, p := range a.Properties {
		var schema struct {
			Type        any    `json:"type"`
			Description string `json:"description"`
		}
		_ = json.Unmarshal(p.Schema, &schema) // compiled before
		fmt.Fprintf(b, "%s: %s\n", p.Name, typeOf(schema.Type))
		if text := oneLine(schema.Description); text != "" {
			fmt.Fprintf(b, "  # %s\n", text)
		}
	}
	b.WriteString("```\n\nCRITICAL: Respond with conversational text only. Do NOT output field names, YAML, or JSON.\n")
}

// typeOf a property, as its schema says it.
func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var names []string
		for _, name := range v {
			names = append(names, fmt.Sprint(name))
		}
		return strings.Join(names, " | ")
	}
	return "any"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// OutputSchema is the schema of a structured agent's result, the arguments of the tool
// final_result; nil for a conversational agent. The agent's description is no part of
// it: the system prompt has told it.
func (a *Agent) OutputSchema() json.RawMessage {
	if !a.Structured {
		return nil
	}
	schema, err := a.Properties.schema(a.Required)
	if err != nil {
		return nil // never of an agent that Parse, Of or New gave
	}
	return schema
}

// AskAgent is the tool of an agent that may ask any other.
const AskAgent = "ask_agent"

func (a *Agent) asksAny() bool { return a.Has(AskAgent) }
