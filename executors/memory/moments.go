package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// Bounds of a moment.
const (
	maxMoment = 16 << 10 // bytes of text
	maxEdges  = 64
)

// moment is a document of agent_moments: of one user, under {session}:{label}.
type moment struct {
	ID      string `json:"id"`
	Tenant  string `json:"tenant_id"`
	User    string `json:"user_id"`
	Session string `json:"session_id"`
	Plan    string `json:"plan_id,omitempty"`
	Key     string `json:"key"`
	catalog.Moment
	Linked    []string         `json:"linked,omitempty"`  // keys that its edges name
	Content   string           `json:"content,omitempty"` // of a message, which is read as a moment
	Source    string           `json:"source,omitempty"`  // intent_id of the intent that wrote it
	Sources   []intents.Source `json:"sources,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
}

// momentID separates the keys of users.
func momentID(user, key string) string { return user + "/" + key }

// writeMoment stores a moment of the session. A later one under the same key replaces it. A crash
// before the write leaves nothing, and the intent may be repeated.
func (m *memory) writeMoment(ctx context.Context, o *executors.Intent, args catalog.WriteMemory) (*executors.Result, error) {
	actor, session := o.Ticket.Actor, o.Context.SessionID
	if o.Ticket.Scope != nil || session == "" || args.Notes != "" || !labels.MatchString(args.Label) {
		return nil, executors.Fail(intents.MalformedArgs, "a manager writes moments, under a label and in a session, without notes")
	}
	full := session + ":" + args.Label
	doc := moment{
		ID: momentID(actor.UserID, full), Tenant: actor.Tenant, User: actor.UserID, Session: session, Plan: o.Context.PlanID,
		Key: full, Source: o.ID, Sources: o.Ticket.Sources, CreatedAt: timestamp(m.Now()),
	}
	dec := json.NewDecoder(bytes.NewReader(args.Data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc.Moment); err != nil || doc.Text == "" || len(doc.Text) > maxMoment || len(doc.Edges) > maxEdges {
		return nil, executors.Fail(intents.MalformedArgs, "data of a moment is {text, kind, edges}: 1 to 16384 bytes of text, at most 64 edges")
	}
	doc.Kind = cmp.Or(doc.Kind, catalog.ScopeMoment)
	for _, e := range doc.Edges {
		doc.Linked = append(doc.Linked, e.From, e.To)
	}
	slices.Sort(doc.Linked)
	doc.Linked = slices.Compact(doc.Linked)
	stored, err := executors.Document(doc.ID, o.Ticket.Position, doc)
	if err != nil {
		return nil, err
	}
	if err := m.Documents.Put(ctx, actor.Tenant, storage.IndexMoments, stored); err != nil {
		return nil, executors.Store(err)
	}
	failpoint.Hit(failpoint.MemoryWritten)
	return &executors.Result{Value: catalog.WriteMemoryResult{Key: full, SizeBytes: int64(len(doc.Text)), Validated: true}}, nil
}

// maxSteps is how far TRAVERSE goes.
const maxSteps = 3

// traverse gives the moment of a key, then those that edges lead to from it in either
// direction, the nearest first.
func (m *memory) traverse(ctx context.Context, o *executors.Intent, from string, limit int) (*executors.Result, error) {
	found := []catalog.MemoryHit{}
	seen := map[string]bool{}
	for at, steps := []string{from}, 0; len(at) > 0 && steps <= maxSteps; steps++ {
		hits, err := m.hits(ctx, o, storage.IndexMoments, storage.Query{Terms: map[string][]string{"key": at}, Limit: maxTopK})
		if err != nil {
			return nil, err
		}
		linked, err := m.hits(ctx, o, storage.IndexMoments, storage.Query{Terms: map[string][]string{"linked": at}, Limit: maxTopK})
		if err != nil {
			return nil, err
		}
		for _, key := range at {
			seen[key] = true
		}
		found, at = append(found, hits...), nil
		for _, h := range append(hits, linked...) {
			for _, e := range h.Edges {
				if seen[e.From] || seen[e.To] {
					at = append(at, e.From, e.To)
				}
			}
		}
		slices.Sort(at)
		at = slices.DeleteFunc(slices.Compact(at), func(key string) bool { return seen[key] })
	}
	return resultOf(catalog.MemoryQueryResult{Hits: found[:min(len(found), limit)], By: catalog.ByEdges}), nil
}
