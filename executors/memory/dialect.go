package memory

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/statement"
)

// said are the types of messages that people and agents write; the others are internal.
var said = map[string][]string{"message_type": {"user", "assistant", catalog.Memory, catalog.Observation}}

// byMode executes a query of the dialect over everything that the intent's user may see. A task
// gets here only for an agent that has the tool search, which the router ensures.
func (m *memory) byMode(ctx context.Context, o *executors.Intent, args catalog.MemoryQuery) (*executors.Result, error) {
	switch args.Mode {
	case catalog.Lookup:
		return m.lookup(ctx, o, args.Text)
	case catalog.Traverse:
		return m.traverse(ctx, o, args.Text, args.TopK)
	case catalog.SQL:
		return m.sql(ctx, o, args.Text)
	}
	found, err := m.near(ctx, ofUser(o), args)
	lists := [][]catalog.MemoryHit{found.Hits}
	for index, terms := range map[string]map[string][]string{storage.IndexMoments: nil, storage.IndexMessages: said} {
		if err != nil {
			return nil, err
		}
		var hits []catalog.MemoryHit
		hits, err = m.hits(ctx, o, index, storage.Query{Text: args.Text, Fuzzy: args.Mode == catalog.Fuzzy, Terms: terms, Limit: args.TopK})
		lists = append(lists, hits)
	}
	found.Hits = interleave(lists, args.TopK)
	return resultOf(found), err
}

// ofUser is an intent as if its user had sent it without a task.
func ofUser(o *executors.Intent) *executors.Intent {
	own := *o
	own.Ticket.Scope = nil
	return &own
}

// owned restricts a query to documents of the intent's user.
func (m *memory) owned(o *executors.Intent, q storage.Query) storage.Query {
	terms := map[string][]string{"user_id": {o.Ticket.Actor.UserID}}
	maps.Copy(terms, q.Terms)
	q.Terms, q.Now = terms, intents.FormatTime(m.Now())
	return q
}

// hits are the user's moments, or messages, that a query selects.
func (m *memory) hits(ctx context.Context, o *executors.Intent, index string, q storage.Query) ([]catalog.MemoryHit, error) {
	page, err := m.Documents.Search(ctx, o.Ticket.Actor.Tenant, index, m.owned(o, q))
	var out []catalog.MemoryHit
	for _, doc := range page.Documents {
		var d moment
		if err := json.Unmarshal(doc.Body, &d); err != nil {
			return nil, executors.Fail(intents.ExecutorFailed, "a stored document cannot be read")
		}
		hit := catalog.MemoryHit{Key: d.Key, Scope: catalog.ScopeMoment, Text: visible.Cut(d.Text+d.Content, catalog.MaxLine), Source: d.Source, Sources: d.Sources, CreatedAt: d.CreatedAt, Edges: d.Edges}
		if index == storage.IndexMessages {
			hit.Key, hit.Scope = doc.ID, "message"
		}
		out = append(out, hit)
	}
	return out, executors.Store(err)
}

// lookup returns the document of a key: the key of a moment has one colon, that of a message none.
func (m *memory) lookup(ctx context.Context, o *executors.Intent, key string) (*executors.Result, error) {
	user, index, id := o.Ticket.Actor.UserID, storage.IndexMoments, momentID(o.Ticket.Actor.UserID, key)
	var data any
	var notes string
	var sources []intents.Source
	switch strings.Count(key, ":") {
	case 0:
		index, id = storage.IndexMessages, key
		fallthrough
	case 1:
		doc, err := m.Documents.Get(ctx, o.Ticket.Actor.Tenant, index, id)
		if err != nil {
			return nil, executors.Store(err)
		}
		var d moment
		if err := json.Unmarshal(doc.Body, &d); err != nil || d.User != user {
			return nil, executors.Store(storage.ErrNotFound)
		}
		data, sources = d.Moment, d.Sources
		if index == storage.IndexMessages {
			data = d.Content
		}
	default:
		r, err := m.readable(ctx, ofUser(o), key)
		if err != nil {
			return nil, err
		}
		data, notes, sources = json.RawMessage(r.Text), r.Notes, r.Sources
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	found := catalog.ReadMemoryResult{Key: key, Notes: notes}
	found.Data, found.Reference, err = m.inlineOrFile(ctx, o, raw)
	return &executors.Result{Value: catalog.MemoryQueryResult{ReadMemoryResult: &found}, Sources: sources}, err
}

// maxSchemas are those of one tenant that a statement sees.
const maxSchemas = 1000

// schemas are the agents of the intent's tenant, with the built-in ones. A task sees none: an
// agent's prompt has what it may know of others.
func (m *memory) schemas(ctx context.Context, o *executors.Intent) (map[string][]json.RawMessage, error) {
	if o.Ticket.Scope != nil {
		return nil, nil
	}
	out, seen := slices.Clone(m.Builtins), map[string]bool{}
	for _, tenant := range []string{o.Ticket.Actor.Tenant, "system"} {
		page, err := m.Documents.Search(ctx, tenant, storage.IndexSchemas, storage.Query{Terms: map[string][]string{"kind": {catalog.KindAgent}}, Sort: "name", Limit: maxSchemas})
		if err != nil {
			return nil, executors.Store(err)
		}
		for _, doc := range page.Documents {
			var row struct{ Name string }
			if json.Unmarshal(doc.Body, &row) == nil && !seen[row.Name] { // a tenant's hides that of the system
				out, seen[row.Name] = append(out, doc.Body), true
			}
		}
	}
	return map[string][]json.RawMessage{storage.IndexSchemas: out}, nil
}

// sql executes a statement over the user's own documents. Above the limit it sees
// the newest documents and reports that.
func (m *memory) sql(ctx context.Context, o *executors.Intent, text string) (*executors.Result, error) {
	newest := m.owned(o, storage.Query{Sort: "-created_at", Limit: 1000})
	memories := m.owned(o, storage.Query{Sort: "-created_at", Limit: 1000, Terms: map[string][]string{"scope": {scopeUser}}, Ranges: map[string]storage.Range{"source": {GTE: "sha256:"}}}) // locks have none
	agents, err := m.schemas(ctx, o)
	if err != nil {
		return nil, err
	}
	views := map[string]storage.Query{storage.IndexMemory: memories, storage.IndexMoments: newest, storage.IndexMessages: newest}
	rows, cut, err := statement.Rows(ctx, m.Documents, o.Ticket.Actor.Tenant, views, agents, strings.TrimRight(text, "; \n"))
	if errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrSlow) || ctx.Err() != nil {
		return nil, executors.Store(err)
	}
	if err != nil {
		return nil, executors.Fail(intents.MalformedArgs, visible.Cut("the statement cannot be used: "+err.Error(), 500))
	}
	result := catalog.MemoryQueryResult{Rows: rows}
	if len(cut) > 0 {
		slices.Sort(cut)
		result.Reason = "there are more rows than a statement reads: only the newest are counted of " + strings.Join(cut, ", ")
	}
	sources, err := m.sourcesOf(ctx, o, views)
	return &executors.Result{Value: result, Sources: sources}, err
}

// sourcesOf are those of all documents that a statement sees: its rows do not say of which they are.
func (m *memory) sourcesOf(ctx context.Context, o *executors.Intent, views map[string]storage.Query) (all []intents.Source, err error) {
	for index, q := range views {
		page, err := m.Documents.Search(ctx, o.Ticket.Actor.Tenant, index, q)
		if err != nil {
			return nil, executors.Store(err)
		}
		for _, doc := range page.Documents {
			var d struct{ Sources []intents.Source }
			if err := json.Unmarshal(doc.Body, &d); err != nil {
				return nil, executors.Fail(intents.ExecutorFailed, "a stored document cannot be read")
			}
			all = intents.JoinSources(all, d.Sources)
		}
	}
	return all, nil
}
