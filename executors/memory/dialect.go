package memory

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// message is what a query reads of a document of agent_messages.
type message struct {
	ID        string    `json:"message_id"`
	User      string    `json:"user_id"`
	Type      string    `json:"message_type"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
}

// said are the types of messages that people and agents say; the others are of the machinery.
var said = []string{"user", "assistant", catalog.Memory, catalog.Observation}

// byMode carries a query of the dialect out: over all that the order's user may see. A
// task comes here only for an agent that has the tool search, as the router sees to.
func (m *memory) byMode(ctx context.Context, o *executors.Order, args catalog.MemoryQuery) (*executors.Result, error) {
	switch args.Mode {
	case catalog.Lookup:
		return m.lookup(ctx, o, args.Text)
	case catalog.Traverse:
		return m.traverse(ctx, o, args.Text, args.TopK)
	case catalog.SQL:
		return m.sql(ctx, o, args.Text)
	}
	memories, err := m.near(ctx, ofUser(o), args)
	if err != nil {
		return nil, err
	}
	moments, err := m.moments(ctx, o, storage.Query{Text: args.Text, Limit: args.TopK})
	if err != nil {
		return nil, err
	}
	messages, err := hitsOf(ctx, m, o, storage.IndexMessages, storage.Query{Text: args.Text, Terms: map[string][]string{"message_type": said}, Limit: args.TopK}, func(d message) catalog.MemoryHit {
		return catalog.MemoryHit{Key: d.ID, Scope: "message", Text: executors.Cut(d.Content, hitText), CreatedAt: d.CreatedAt}
	})
	if err != nil {
		return nil, err
	}
	memories.Hits = interleave([][]catalog.MemoryHit{memories.Hits, moments, messages}, args.TopK)
	return &executors.Result{Value: memories}, nil
}

// ofUser is an order as if its user had sent it without a task.
func ofUser(o *executors.Order) *executors.Order {
	own := *o
	own.Ticket.Scope = nil
	return &own
}

// hitsOf are the documents of the user alone that a query selects, as hits.
func hitsOf[T any](ctx context.Context, m *memory, o *executors.Order, index string, q storage.Query, hit func(T) catalog.MemoryHit) ([]catalog.MemoryHit, error) {
	docs, err := m.owned(ctx, o, index, q)
	var hits []catalog.MemoryHit
	for _, doc := range docs {
		var d T
		if err := json.Unmarshal(doc.Body, &d); err != nil {
			return nil, executors.Fail(intents.ExecutorFailed, "a stored document cannot be read")
		}
		hits = append(hits, hit(d))
	}
	return hits, err
}

// owned are the documents of the user that a query selects.
func (m *memory) owned(ctx context.Context, o *executors.Order, index string, q storage.Query) ([]storage.Document, error) {
	terms := map[string][]string{"user_id": {o.Ticket.Actor.UserID}}
	for name, values := range q.Terms {
		terms[name] = values
	}
	q.Terms, q.Now = terms, intents.FormatTime(m.Now())
	page, err := m.Documents.Search(ctx, o.Ticket.Actor.Tenant, index, q)
	return page.Documents, executors.Store(err)
}

// lookup gives what stands under a key: a moment, a message or a memory.
func (m *memory) lookup(ctx context.Context, o *executors.Order, key string) (*executors.Result, error) {
	actor := o.Ticket.Actor
	found := catalog.ReadMemoryResult{Key: key}
	var data any
	switch {
	case isMoment(key):
		var d moment
		if err := m.load(ctx, actor.Tenant, storage.IndexMoments, momentID(actor.UserID, key), &d); err != nil {
			return nil, err
		}
		data = d.Moment
	case !strings.Contains(key, ":"):
		var d message
		if err := m.load(ctx, actor.Tenant, storage.IndexMessages, key, &d); err != nil {
			return nil, err
		}
		if d.User != actor.UserID {
			return nil, executors.Store(storage.ErrNotFound)
		}
		data = d.Content
	default:
		r, err := m.readable(ctx, ofUser(o), key)
		if err != nil {
			return nil, err
		}
		data = json.RawMessage(r.Text)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	if found.Data, found.Reference, err = m.gated(ctx, o, raw); err != nil {
		return nil, err
	}
	return &executors.Result{Value: catalog.MemoryQueryResult{ReadMemoryResult: &found}}, nil
}

func (m *memory) load(ctx context.Context, tenant, index, id string, into any) error {
	doc, err := m.Documents.Get(ctx, tenant, index, id)
	if err != nil {
		return executors.Store(err)
	}
	if json.Unmarshal(doc.Body, into) != nil {
		return executors.Fail(intents.ExecutorFailed, "a stored document cannot be read")
	}
	return nil
}

// sqlRows are the newest rows of each view that a statement sees.
const sqlRows = 1000

// sql carries a statement out over views of the user's own rows, where the store can.
func (m *memory) sql(ctx context.Context, o *executors.Order, statement string) (*executors.Result, error) {
	store, ok := m.Documents.(storage.Querier)
	if !ok {
		return nil, executors.Fail(intents.MalformedArgs, "SQL needs the embedded store of documents: use LOOKUP, SEARCH, FUZZY or TRAVERSE")
	}
	views := []storage.View{{Name: "memories", Index: storage.IndexMemory}, {Name: "moments", Index: storage.IndexMoments}, {Name: "messages", Index: storage.IndexMessages}}
	for i, v := range views {
		q := storage.Query{Sort: "-created_at", Limit: sqlRows}
		if v.Index == storage.IndexMemory {
			q.Terms = map[string][]string{"scope": {scopeUser}} // those of a session are read in it
		}
		var err error
		if views[i].Documents, err = m.owned(ctx, o, v.Index, q); err != nil {
			return nil, err
		}
		views[i].Documents = slices.DeleteFunc(views[i].Documents, func(d storage.Document) bool { return strings.HasPrefix(d.ID, ownPrefix) })
	}
	rows, more, err := store.Rows(ctx, views, statement)
	var wrong *storage.StatementError
	switch {
	case errors.As(err, &wrong):
		return nil, executors.Fail(intents.MalformedArgs, executors.Cut("the statement cannot be used: "+wrong.Reason, 500))
	case err != nil:
		return nil, executors.Store(err)
	}
	return &executors.Result{Value: catalog.MemoryQueryResult{Rows: rows, Partial: more}}, nil
}
