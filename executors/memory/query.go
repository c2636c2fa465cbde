package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/storage"
)

const (
	defaultTopK = 5
	maxTopK     = 50
)

// query finds memories near a text, best first: only those that read_memory would return to the
// same intent, and no expired ones. The search itself is filtered. Without vectors it searches by
// words, and the result says so. With a mode it uses the dialect.
func (m *memory) query(ctx context.Context, o *executors.Intent, args catalog.MemoryQuery) (*executors.Result, error) {
	args.TopK = cmp.Or(args.TopK, defaultTopK)
	if args.TopK < 0 || args.TopK > maxTopK {
		return nil, executors.Fail(intents.MalformedArgs, "top_k is 1 to 50")
	}
	if args.Mode != "" {
		return m.byMode(ctx, o, args)
	}
	found, err := m.near(ctx, o, args)
	return resultOf(found), err
}

// resultOf is a result with the sources of its hits.
func resultOf(found catalog.MemoryQueryResult) *executors.Result {
	out := &executors.Result{Value: found}
	for _, hit := range found.Hits {
		out.Sources = append(out.Sources, hit.Sources...)
	}
	return out
}

// near returns the memories that an intent may read and that are near its text.
func (m *memory) near(ctx context.Context, o *executors.Intent, args catalog.MemoryQuery) (out catalog.MemoryQueryResult, err error) {
	var near []float32
	var reason string
	if args.Mode != catalog.Fuzzy { // spelling is of words
		if near, reason, err = embed.OneVector(ctx, m.Embedder, args.Text, EmbedWait); err != nil {
			return out, err
		}
	}
	var found [][]catalog.MemoryHit
	for _, terms := range filters(o, args.Scope) {
		q := storage.Query{Terms: terms, Limit: args.TopK, Now: intents.FormatTime(m.Now())}
		if near != nil {
			terms["embedder"] = []string{m.Embedder.Name()} // vectors of two do not compare
			q.Vector = &storage.Vector{Member: "embedding", Values: near}
		} else {
			q.Text, q.Fuzzy = args.Text, args.Mode == catalog.Fuzzy
		}
		hits, err := m.search(ctx, o, q)
		if err != nil {
			return out, err
		}
		found = append(found, hits)
	}
	if near == nil {
		return catalog.MemoryQueryResult{Hits: interleave(found, args.TopK), By: catalog.ByWords, Reason: reason}, nil
	}
	return catalog.MemoryQueryResult{Hits: nearest(found, args.TopK), By: catalog.ByVectors, Embedder: m.Embedder.Name()}, nil
}

// filters are the searches that together cover everything that the intent may see.
func filters(o *executors.Intent, scope string) []map[string][]string {
	if o.Ticket.Scope != nil {
		return taskFilters(o, scope)
	}
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

// taskFilters are those of a task: what it wrote itself, and its step's input.
func taskFilters(o *executors.Intent, scope string) []map[string][]string {
	task := o.Ticket.Scope
	out := []map[string][]string{{"task_id": {task.Task}, "session_id": {o.Context.SessionID}}}
	if inputs := task.Inputs(); len(inputs) > 0 {
		out = append(out, map[string][]string{"key": inputs})
	}
	if scope != "" {
		for _, terms := range out {
			terms["scope"] = []string{scope}
		}
	}
	return out
}

// search returns the hits of a query that the intent may read.
func (m *memory) search(ctx context.Context, o *executors.Intent, q storage.Query) ([]catalog.MemoryHit, error) {
	page, err := m.Documents.Search(ctx, o.Ticket.Actor.Tenant, storage.IndexMemory, q)
	if err != nil {
		return nil, executors.Store(err)
	}
	var hits []catalog.MemoryHit
	for _, doc := range page.Documents {
		var r record
		if err := json.Unmarshal(doc.Body, &r); err != nil || isLock(r) || r.expired(m.Now()) || !readable(o, r) {
			continue
		}
		hit := catalog.MemoryHit{Key: r.Key, Scope: r.Scope, Text: visible.Cut(r.Text, catalog.MaxLine), Source: r.Source, Sources: r.Sources, CreatedAt: r.CreatedAt}
		if q.Vector != nil {
			if doc.Score <= 0 {
				continue // it has nothing in common with the text
			}
			hit.Score = min(doc.Score, 1)
		}
		hits = append(hits, hit)
	}
	return hits, nil
}

// nearest merges lists by their scores, which are all cosines and so comparable.
func nearest(lists [][]catalog.MemoryHit, limit int) []catalog.MemoryHit {
	all := append([]catalog.MemoryHit{}, slices.Concat(lists...)...)
	slices.SortStableFunc(all, func(a, b catalog.MemoryHit) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(len(all), limit)]
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
