package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// The indices (DESIGN §12, STO-03). Each has a JSON Schema in schemas/storage.
const (
	IndexMemory   = "agent_memory"
	IndexPlans    = "agent_plans"
	IndexSouls    = "agent_souls"
	IndexSessions = "agent_sessions"
	IndexMessages = "agent_messages"
	IndexEvents   = "agent_events"
	IndexOrders   = "agent_orders" // the search index of the journal: one entry per order record
)

// SchemaError is the StorageSchemaError of the blueprint (STO-02): a document
// that its index does not allow. Nothing was written.
type SchemaError struct {
	Index, Pointer, Reason string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("StorageSchemaError: %s%s: %s", e.Index, e.Pointer, e.Reason)
}

// ErrStale is that a fenced write carried a lower position than the stored one.
var ErrStale = errors.New("storage: stale write")

// ErrExists is that a create-only write met an existing document.
var ErrExists = errors.New("storage: document exists")

// Document is one JSON document of an index, owned by one tenant. Position is
// the journal position that last wrote it (DESIGN §5, fencing).
type Document struct {
	ID       string
	Position int64
	Body     json.RawMessage
}

// Query selects documents of one tenant. Terms are exact matches on top-level
// members (all must hold; several values: any of them; an array of strings
// matches by any element, a number or a boolean by its JSON text). Text is a
// full-text query over the text members of the index, any word matches, best
// match first; otherwise Sort gives the order. Documents without the sorted
// member come last in both directions. Deleted and expired (member ttl_at in the
// past of Now) documents are never returned. A cursor belongs to its query.
type Query struct {
	Terms map[string][]string
	Text  string
	Sort  string // member name, "-" in front for descending; default "_position"
	After string // cursor of the previous page
	Limit int    // 1..1000, default 100
	Now   string // RFC 3339 time for ttl_at; empty: expired documents are not filtered
}

// Page is one page of results; Cursor is empty on the last.
type Page struct {
	Documents []Document
	Cursor    string
}

// Documents keeps schema-checked documents per index and tenant. Every call
// carries the tenant and the driver adds the filter itself: another tenant's
// document does not exist for the caller. Get reads its own writes; Search may
// lag behind. Safe for concurrent use. A write that returned without error is
// durable; cancelling the context stops the wait, not the write. A document that
// its index does not allow, or whose member tenant_id is not the tenant, is
// *SchemaError before anything is written.
type Documents interface {
	Get(ctx context.Context, tenant, index, id string) (Document, error) // ErrNotFound
	// Put writes a document fenced by its position: a higher position replaces,
	// an equal one is already applied (nil, nothing written), a lower one is ErrStale.
	Put(ctx context.Context, tenant, index string, doc Document) error
	// Swap writes only if the stored position equals expected (Nobody: must not
	// exist), else ErrStale. It never lowers a position: that is ErrStale too.
	Swap(ctx context.Context, tenant, index string, expected int64, doc Document) error
	// Create writes only documents that do not exist; existing ones are left as
	// they are (append-only events, projections). created counts the new ones.
	// All documents of a call are written or none.
	Create(ctx context.Context, tenant, index string, docs ...Document) (created int, err error)
	Search(ctx context.Context, tenant, index string, q Query) (Page, error)
	// Delete removes a document. Missing is fine.
	Delete(ctx context.Context, tenant, index, id string) error
}
