package views

import (
	"cmp"
	"context"
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
