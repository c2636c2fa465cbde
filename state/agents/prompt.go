package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"aob.dev/writ/internal/visible"
)

// maxSoul bounds a soul inside a prompt, in bytes.
const maxSoul = 16 << 10

// System is the agent's system prompt: its instructions, then the soul (persona and language of
// the tenant), which changes the manner of its answers and none of its rules, then notes on its
// tools (those of its file, then those given), on the agents that it may ask, and on what to
// consider. An empty soul or note adds nothing. It is built for each request and stored nowhere.
func (a *Agent) System(soul string, notes ...string) string {
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
		b.WriteString("\nPersona, for tone, name and language only; the rules above stand:\n" + visible.Cut(soul, maxSoul) + "\n")
	}
	a.toolNotes(&b, notes)
	a.subAgents(&b)
	a.thinking(&b)
	return b.String()
}

// toolNotes adds what the agent needs to know of its tools beyond their own descriptions.
func (a *Agent) toolNotes(b *strings.Builder, notes []string) {
	var all []string
	for _, t := range a.Tools {
		if t.Description != "" {
			all = append(all, "**"+cmp.Or(t.Name, t.Server)+"**: "+oneLine(t.Description))
		}
	}
	head := "\n## Tool Notes\n"
	for _, note := range append(all, notes...) {
		if note != "" {
			b.WriteString(head + "- " + note + "\n")
			head = ""
		}
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

// thinking adds what a conversational agent considers before it answers.
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

// typeOf is the type of a property in its schema.
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
// final_result; nil for a conversational agent. It omits the agent's description, which is in
// the system prompt.
func (a *Agent) OutputSchema() json.RawMessage {
	if !a.Structured {
		return nil
	}
	schema, err := a.Properties.schema(a.Required)
	if err != nil {
		return nil // never for an agent from Parse, Of or New
	}
	return schema
}

// AskAgent is the tool of an agent that may ask any other.
const AskAgent = "ask_agent"

func (a *Agent) asksAny() bool { return a.Has(AskAgent) }
