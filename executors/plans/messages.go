package plans

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// messages lists the user's messages of all sessions, newest first.
func (p plans) messages(ctx context.Context, o *executors.Intent, args catalog.MessageList) (*executors.Result, error) {
	q, err := query(o, "created_at", args.Period, false)
	if err != nil {
		return nil, err
	}
	q.After = args.After
	out := catalog.MessageListResult{Messages: []catalog.Message{}}
	out.Cursor, err = p.walk(ctx, o, storage.IndexMessages, q, listed(cmp.Or(args.Limit, defaultList)), func(doc storage.Document) error {
		row := struct {
			catalog.Message
			Type string `json:"message_type"`
		}{}
		if err := json.Unmarshal(doc.Body, &row); err != nil {
			return executors.Fail(intents.ExecutorFailed, "a stored message cannot be read")
		}
		row.Role = row.Type
		out.Messages = append(out.Messages, row.Message)
		if row.Type != "assistant" || row.PlanID == "" {
			return nil
		}
		return p.addUsage(ctx, o, &out.Messages[len(out.Messages)-1])
	})
	return &executors.Result{Value: out}, err
}

// addUsage adds the usage of its turn to an assistant's message. A plan that is no longer retained
// adds nothing.
func (p plans) addUsage(ctx context.Context, o *executors.Intent, m *catalog.Message) error {
	doc, err := p.docs.Get(ctx, o.Ticket.Actor.Tenant, storage.IndexPlans, m.PlanID)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return executors.Store(err)
	}
	plan, err := viewOf(doc)
	if err != nil || plan.UserID != o.Ticket.Actor.UserID {
		return err
	}
	u := catalog.SumUsage(plan.Usage)
	m.Agent, m.Model, m.InputTokens, m.OutputTokens, m.LatencyMS = u.Agent, u.Model, int64(u.InputTokens), int64(u.OutputTokens), u.LatencyMS
	return nil
}
