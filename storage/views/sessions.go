package views

import (
	"cmp"
	"context"
	"errors"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Sessions lists a user's sessions without their turns, the last used first.
func Sessions(ctx context.Context, docs storage.Documents, tenant, user string, args catalog.SessionList, now time.Time) (catalog.SessionListResult, error) {
	out := catalog.SessionListResult{Sessions: []catalog.Session{}}
	if err := fresh(ctx, docs, storage.IndexSessions); err != nil {
		return out, err
	}
	page, err := docs.Search(ctx, tenant, storage.IndexSessions, storage.Query{
		Terms: map[string][]string{"user_id": {user}}, Sort: "-last_active", After: args.After, Limit: cmp.Or(args.Limit, DefaultList),
	})
	if err != nil {
		return out, err
	}
	for _, doc := range page.Documents {
		var found struct {
			catalog.Session
			State string     `json:"state"`
			TTLAt *time.Time `json:"ttl_at"`
		}
		if err := read(doc, &found); err != nil {
			return out, err
		}
		s := found.Session
		s.Status, s.TTL = catalog.StatusOfSession(found.State, found.TTLAt, now), found.TTLAt
		s.WorkflowState, s.TurnHistory = nil, []catalog.Turn{}
		out.Sessions = append(out.Sessions, s)
	}
	out.Cursor = page.Cursor
	return out, nil
}

// Messages lists a user's messages of all sessions, newest first.
func Messages(ctx context.Context, docs storage.Documents, tenant, user string, args catalog.MessageList) (catalog.MessageListResult, error) {
	q := query(user, "created_at", args.Period)
	q.After = args.After
	out := catalog.MessageListResult{Messages: []catalog.Message{}}
	var err error
	out.Cursor, err = walk(ctx, docs, tenant, storage.IndexMessages, q, listed(args.Limit), func(doc storage.Document) error {
		row := struct {
			catalog.Message
			Type string `json:"message_type"`
		}{}
		if err := read(doc, &row); err != nil {
			return err
		}
		row.Role = row.Type
		out.Messages = append(out.Messages, row.Message)
		if row.Type != "assistant" || row.PlanID == "" {
			return nil
		}
		return addUsage(ctx, docs, tenant, user, &out.Messages[len(out.Messages)-1])
	})
	return out, err
}

// addUsage adds the usage of its turn to an assistant's message. A plan that is no longer retained
// adds nothing.
func addUsage(ctx context.Context, docs storage.Documents, tenant, user string, m *catalog.Message) error {
	plan, err := Plan(ctx, docs, tenant, m.PlanID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && plan.UserID != user {
		return nil
	}
	u := catalog.SumUsage(plan.Usage)
	m.Agent, m.Model, m.InputTokens, m.OutputTokens, m.LatencyMS = u.Agent, u.Model, int64(u.InputTokens), int64(u.OutputTokens), u.LatencyMS
	return err
}
