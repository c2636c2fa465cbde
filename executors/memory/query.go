package memory

import (
	"context"
	"encoding/json"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

const (
	defaultTopK = 5
	maxTopK     = 50
	hitText     = 2 << 10 // bytes of a memory in an answer
)

// query finds memories by their words, best first: of this session, of this
// user, of the tenant. The filters are part of the search, not of what becomes
// of its results (MEM-12), and expired memories are none of them (MEM-13).
func (m *memory) query(ctx context.Context, o *executors.Order) (*executors.Result, error) {
	var args catalog.MemoryQuery
	if err := o.Decode(&args); err != nil {
		return nil, err
	}
	if args.TopK == 0 {
		args.TopK = defaultTopK
	}
	if args.TopK < 0 || args.TopK > maxTopK {
		return nil, executors.Fail(intents.MalformedArgs, "top_k is 1 to 50")
	}
	var found [][]catalog.MemoryHit
	for _, terms := range filters(o, args.Scope) {
		hits, err := m.search(ctx, o.Ticket.Actor.Tenant, args, terms)
		if err != nil {
			return nil, err
		}
		found = append(found, hits)
	}
	return &executors.Result{Value: catalog.MemoryQueryResult{Hits: interleave(found, args.TopK)}}, nil
}

// filters are the searches that together cover what the actor may see.
func filters(o *executors.Order, scope string) []map[string][]string {
	var out []map[string][]string
	add := func(name string, terms map[string][]string) {
		if scope == "" || scope == name {
			terms["scope"] = []string{name}
			out = append(out, terms)
		}
	}
	user := []string{o.Ticket.Actor.UserID}
	if session := o.Context.SessionID; session != "" {
		add(scopeSession, map[string][]string{"user_id": user, "session_id": {session}})
	}
	add(scopeUser, map[string][]string{"user_id": user})
	add(scopeTenant, map[string][]string{})
	return out
}

func (m *memory) search(ctx context.Context, tenant string, args catalog.MemoryQuery, terms map[string][]string) ([]catalog.MemoryHit, error) {
	page, err := m.Documents.Search(ctx, tenant, storage.IndexMemory, storage.Query{
		Terms: terms, Text: args.Text, Limit: args.TopK, Now: intents.FormatTime(m.Now()),
	})
	if err != nil {
		return nil, executors.Store(err)
	}
	var hits []catalog.MemoryHit
	for _, doc := range page.Documents {
		var r record
		if err := json.Unmarshal(doc.Body, &r); err != nil || isLock(r) || r.expired(m.Now()) {
			continue
		}
		hits = append(hits, catalog.MemoryHit{Key: r.Key, Scope: r.Scope, Text: executors.Cut(r.Text, hitText), Source: r.Source, CreatedAt: r.CreatedAt})
	}
	return hits, nil
}

// interleave merges lists that are each ordered by a rank of their own: the
// best of each, then the second of each.
func interleave(lists [][]catalog.MemoryHit, limit int) []catalog.MemoryHit {
	out := []catalog.MemoryHit{}
	for i := 0; ; i++ {
		more := false
		for _, list := range lists {
			if i >= len(list) {
				continue
			}
			more = true
			if len(out) == limit {
				return out
			}
			out = append(out, list[i])
		}
		if !more {
			return out
		}
	}
}
