package agentic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// request begins the request of an agent in a turn: its system prompt, then the context, then the
// history, then one message of the user. System prompt and context are never stored: each run
// builds them anew from the definition of the agent and from the record.
//
// What changes with each turn comes last: servers cache the beginning that requests have in common,
// and charge less for it.
func request(a *agents.Agent, soul string, t Turn, now time.Time, message string, notes ...string) model.Request {
	messages := append([]model.Message{{Role: model.RoleSystem, Text: contextOf(a, t)}}, historyOf(t.History)...)
	if t.Prior != "" { // in the words of the asking agent
		messages = append(messages, model.Message{Role: model.RoleAssistant, Text: "[Prior context] " + t.Prior})
	}
	if t.Reminder != "" { // not the user's words either: it replaces them here
		messages = append(messages, model.Message{Role: model.RoleAssistant, Text: t.Reminder})
		message = t.withReminderDue(message)
	}
	images := slices.DeleteFunc(slices.Clone(t.Images), func(url string) bool { return url == "" })
	if gone := len(t.Images) - len(images); gone > 0 {
		message += fmt.Sprintf("\n[%d images, which are no longer there: ask the user for them]", gone)
	}
	return model.Request{
		Agent: a.Name, System: a.System(soul, notes...), Temperature: a.Temperature, Stop: a.Stop, MaxTokens: a.MaxTokens, Effort: a.Effort, Parallel: a.Parallel,
		Messages: append(messages, model.Message{Role: model.RoleUser, Note: momentOf(a, t, now), Text: message, Images: images}),
	}
}

// line of a context.
type line struct{ name, value string }

// linesOfContext are those that have a value, each after a line break.
func linesOfContext(lines ...line) (text string) {
	for _, l := range lines {
		if value := strings.Join(strings.Fields(l.value), " "); value != "" { // in one line
			text += "\n" + l.name + ": " + value
		}
	}
	return text
}

// momentOf states what is new in a turn: the time, to the minute, and who may be asked.
func momentOf(a *agents.Agent, t Turn, now time.Time) string {
	now = now.UTC()
	if t.About != nil {
		if zone, err := time.LoadLocation(t.About.TimeZone); err == nil {
			now = now.In(zone)
		}
	}
	return strings.TrimPrefix(linesOfContext(
		line{"Date", now.Format("Monday, 2006-01-02")},
		line{"Time", now.Format("15:04 MST")},
		line{"Routing table", routingTable(a, t)},
	), "\n")
}

// contextOf states the user and the identity for which an agent works.
func contextOf(a *agents.Agent, t Turn) string {
	var about catalog.TurnContext
	if t.About != nil {
		about = *t.About
	}
	text := "[Context]" + linesOfContext([]line{
		{"Time zone", about.TimeZone},
		{"User ID", t.UserID},
		{"User email", t.Transient.UserEmail},
		{"User name", t.Transient.UserName},
		{"Session", t.SessionID},
		{"Session name", about.SessionName},
		{"Session metadata", about.SessionMetadata},
		{"Agent", a.Name},
		{"Locale", about.Locale},
		{"Location", about.Location},
	}...)
	if t.Transient.AddedInstruction != "" {
		text += "\n\n[Added instruction]\n" + t.Transient.AddedInstruction
	}
	return text
}

// routingTable is the state of a turn with several agents: the answering agent, the agents that
// it may ask, and those that worked on the turn before. Empty: there is nobody to ask.
func routingTable(a *agents.Agent, t Turn) string {
	table := struct {
		Active string   `json:"active"`
		MayAsk []string `json:"may_ask"`
		Before []string `json:"turn_before,omitempty"`
	}{Active: a.Name, MayAsk: a.SubAgents}
	if a.Has(agents.AskAgent) {
		table.MayAsk = []string{"*"}
	}
	if len(table.MayAsk) == 0 {
		return ""
	}
	if t.Before != nil {
		table.Before = t.Before.Agents
	}
	return string(compact(table))
}

// blocks is the message of a user in parts: the line [Name], then a line of JSON; the
// last one is [Task], whose text goes on to the end of the message.
type blocks struct{ b strings.Builder }

// add adds a part; v is plain data.
func (m *blocks) add(name string, v any) {
	m.b.WriteString("[" + name + "]\n" + string(compact(v)) + "\n\n")
}

// task ends the message.
func (m *blocks) task(text string) string {
	return m.b.String() + "[Task]\n" + text
}

// compact returns JSON in one line for models: without escapes for HTML, and with escapes for
// invisible characters.
func compact(v any) json.RawMessage {
	raw, err := intents.MarshalPlain(v)
	if err != nil {
		return json.RawMessage(`null`) // an executor returned invalid raw JSON; the record has it
	}
	return visible.ProseJSON(raw)
}
