package sessions

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/storage"
)

// messages are the turns of an intent as they are stored.
func messages(o *executors.Intent, turns []catalog.Turn) []message {
	out := make([]message, len(turns))
	for i, t := range turns {
		out[i] = message{ID: messageID(o, i), Role: t.Role, Content: t.Content, TS: t.Timestamp.UTC(), Summary: t.IntentSummary}
	}
	return out
}

// messageID derives from the user and the idempotency key of the intent that wrote the
// turn, because an intent that is signed again has another intent_id.
func messageID(o *executors.Intent, i int) string {
	sum := sha256.Sum256([]byte(o.Ticket.Actor.UserID + "\n" + o.Key))
	return fmt.Sprintf("m_%x_%d", sum[:16], i)
}

// has reports whether the session has the turns, which were added together.
func (s *session) has(turns []message) bool {
	return len(turns) > 0 && slices.ContainsFunc(s.Messages, func(m message) bool { return m.ID == turns[0].ID })
}

// row is a document of agent_messages: one turn. It stays when the session itself
// no longer has the turn.
type row struct {
	ID        string `json:"message_id"`
	Tenant    string `json:"tenant_id"`
	User      string `json:"user_id"`
	Session   string `json:"session_id"`
	Turn      string `json:"turn_id,omitempty"`
	Plan      string `json:"plan_id,omitempty"`
	Type      string `json:"message_type"`
	Content   string `json:"content"`
	Trace     string `json:"trace_id,omitempty"`
	Span      string `json:"span_id,omitempty"` // span that wrote it; empty: no tracing
	Position  int64  `json:"position"`
	CreatedAt string `json:"created_at"` // in milliseconds, as those of tools' calls, so that text sorts them

	Agent        string `json:"agent_name,omitempty"`
	Model        string `json:"model,omitempty"`
	InputTokens  int    `json:"input_tokens,omitempty"`
	OutputTokens int    `json:"output_tokens,omitempty"`
	LatencyMS    int64  `json:"latency_ms,omitempty"`

	Sources []intents.Source `json:"sources,omitempty"`
}

// maxModel is how much of a model's name a row has.
const maxModel = 100

// uses records the usage of a turn.
func (r *row) uses(u *catalog.Usage) {
	if u != nil {
		r.Agent, r.Model, r.InputTokens, r.OutputTokens, r.LatencyMS = u.Agent, visible.Cut(u.Model, maxModel), u.InputTokens, u.OutputTokens, u.LatencyMS
	}
}

// messageType of a turn: its role, except for an agent's.
func messageType(role string) string {
	if role == catalog.SpeakerAgent {
		return "assistant"
	}
	return role
}

// writeRows writes the rows of turns, in one call and in their order. Existing rows stay
// as they are, so the same intent may be repeated.
func (s *sessions) writeRows(ctx context.Context, o *executors.Intent, args catalog.SessionAppend, turns []message) error {
	docs := make([]storage.Document, len(turns))
	for i, m := range turns {
		r := row{
			ID: m.ID, Tenant: o.Ticket.Actor.Tenant, User: o.Ticket.Actor.UserID, Session: args.SessionID, Turn: o.Context.TurnID, Plan: o.Context.PlanID,
			Type: messageType(m.Role), Content: m.Content, Trace: o.TraceID, Position: o.Ticket.Position, CreatedAt: intents.FormatTime(m.TS), Sources: o.Ticket.Sources,
		}
		_, r.Span = tracing.IDs(ctx)
		if m.Role == catalog.SpeakerAgent {
			r.uses(args.Used)
		}
		var err error
		if docs[i], err = executors.Document(m.ID, o.Ticket.Position, r); err != nil {
			return err
		}
	}
	_, err := s.docs.Create(ctx, o.Ticket.Actor.Tenant, storage.IndexMessages, docs...)
	return executors.Store(err)
}

// isUnavailable reports whether the store did not answer, so that the outcome is unknown.
func isUnavailable(err error) bool {
	var f *executors.Failure
	return err != nil && (!errors.As(err, &f) || f.Code != intents.NotFound)
}
