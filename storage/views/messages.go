package views

import (
	"context"
	"errors"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

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
