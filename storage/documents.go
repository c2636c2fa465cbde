package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// The indices. Each has a JSON Schema in schemas/storage.
const (
	IndexMemory     = "agent_memory"
	IndexPlans      = "agent_plans"
	IndexSouls      = "agent_souls"
	IndexSessions   = "agent_sessions"
	IndexMessages   = "agent_messages"
	IndexMoments    = "agent_moments"
	IndexEvents     = "agent_events"
	IndexIntents    = "agent_intents"     // the search index of the journal: one entry per intent record
	IndexSkillCalls = "agent_skill_calls" // the typed audit of skill calls
	IndexSchemas    = "agent_schemas"
	IndexRuns       = "workflow_runs"
	IndexWorkflows  = "agent_workflows" // what remote agents keep of sessions
	IndexChunks     = "kb_chunks"

	IndexConnections = "agent_connections" // users' sealed tokens for skill servers
)

// Indices are all of them. The first five are those that the requirements name.
var Indices = []string{
	IndexMemory, IndexSouls, IndexSessions, IndexPlans, IndexEvents,
	IndexMessages, IndexMoments, IndexIntents, IndexSkillCalls, IndexSchemas, IndexWorkflows, IndexRuns, IndexChunks, IndexConnections,
}

// Everybody is the reader of a tenant's knowledge. No user has that id.
const Everybody = "*"

// OwnerOf returns the user that a document of an index belongs to; empty if it is its tenant's. A memory of a
// whole tenant belongs to the user who wrote it.
func OwnerOf(index string, body []byte) (user string, err error) {
	var d struct {
		User   string `json:"user_id"`
		Reader string `json:"reader"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return "", err
	}
	if index == IndexChunks && d.Reader != Everybody {
		return d.Reader, nil
	}
	return d.User, nil
}

// SchemaError is a StorageSchemaError: a document that its index does not allow. Nothing was written.
type SchemaError struct {
	Index, Pointer, Reason string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("StorageSchemaError: %s%s: %s", e.Index, e.Pointer, e.Reason)
}

// ErrStale is that a fenced write carried a lower position than the stored one.
var ErrStale = errors.New("storage: stale write")

// LongLog is the length of a database's write-ahead log in bytes, if something prevents
// its restart.
const LongLog = 512 << 20

// ErrSlow is that a read took longer than the store allows one.
var ErrSlow = errors.New("storage: the query took too long: narrow it, by a shorter time or one more term")

// ErrBusy is that the tenant uses its share already.
var ErrBusy = errors.New("storage: another statement of the tenant is being carried out")

// ErrUnavailable is that the store cannot be reached, or has no room for now. The same
// call may work later. Whether a write took place is not known; its fence makes it safe to
// repeat.
var ErrUnavailable = errors.New("storage: unavailable")

// Unavailable wraps err so that it is also ErrUnavailable, with the text of err.
func Unavailable(err error) error { return unavailable{err} }

type unavailable struct{ error }

func (u unavailable) Is(target error) bool { return target == ErrUnavailable }
func (u unavailable) Unwrap() error        { return u.error }

// Document is one JSON document of an index, owned by one tenant. Position is
// the journal position that last wrote it: the fence against a late writer.
type Document struct {
	ID       string
	Position int64
	Body     json.RawMessage
	// Score is how well a document fits the search that returned it: for Query.Text
	// its BM25 weight, comparable within one answer only; for Query.Vector the
	// cosine of the angle, -1 to 1. Higher is better. Writes ignore it.
	Score float64
}

// Projection is documents of one index and tenant, each id once: Put as Put would
// write them, but one that is stale is left out; Created as Create would.
type Projection struct {
	Put, Created []Document
}

// Query selects documents of one tenant. Terms are exact matches on top-level
// members (all must hold; several values: any of them; an array of strings
// matches by any element, a number or a boolean by its JSON text, a time by the
// millisecond). Every is like Terms, but each of the values must be in the member, an array.
// Ranges bound members; of an array any element. Before bounds the
// position, if it is not 0, of a query without Text and Vector. Text is a
// full-text query over the text members of the index, any word matches, best
// match first; Fuzzy also matches words that are spelt nearly so (see Edits); Vector finds the nearest; with neither, Sort gives the order.
// Documents without the sorted member come last in both directions. Deleted and
// expired (member ttl_at in the past of Now) documents are never returned. A
// cursor belongs to its query; a walk by text over an index that is written to
// meanwhile may miss or repeat documents, as the weights change. A member that the
// index lacks matches nothing.
type Query struct {
	Terms  map[string][]string
	Every  map[string][]string
	Ranges map[string]Range
	Before int64
	Text   string
	Fuzzy  bool    // of Text
	Vector *Vector // not together with Text, Sort or After
	Sort   string  // member name, "-" in front for descending; default "_position"
	After  string  // cursor of the previous page
	Limit  int     // 1..1000, default 100
	Now    string  // RFC 3339 time for ttl_at; empty: expired documents are not filtered
}

// Range bounds a keyword (in the order of its bytes), a number or a time (RFC
// 3339, to the millisecond). At least one bound is set.
type Range struct {
	GTE, GT, LTE, LT string
}

// Vector asks for the documents whose member is nearest by cosine, Query.Limit
// of them at most, best first, on one page. All other conditions of the query hold
// before neighbours are counted, so a filter never makes an answer shorter than
// it has to be.
type Vector struct {
	Member string
	Values []float32 // as many as the index is made for, not all zero
}

// Page is one page of results; Cursor is empty on the last.
type Page struct {
	Documents []Document
	Cursor    string
}

// Aggregation puts the documents of a query into buckets: by a member's value, or
// all into one. A document without the member is in no bucket; one whose member
// is an array of strings is in one for each of them.
type Aggregation struct {
	By          string // member; empty: one bucket
	ValueMember string // numeric member to compute over; empty: documents are only counted
}

// Bucket is the documents that have Key, the JSON text of a value. Sum to Avg are over the Values documents
// that have the number; without any they are 0.
type Bucket struct {
	Key                string
	Count              int64
	Values             int64
	Sum, Min, Max, Avg float64
}

// MaxBuckets bounds the buckets of one answer.
const MaxBuckets = 10_000

// Documents stores schema-checked documents per index and tenant. Every call
// has the tenant, and the driver adds the filter itself: another tenant's
// document does not exist for the caller. Safe for concurrent use.
//
// Get, and the fences of Put, Swap, Create and Project, see every write that has returned.
// Search, Aggregate and Purge may lag behind: what was just written may be
// missing, and an old version of a changed document may be returned.
//
// A write that returned without error is durable; cancelling the context stops
// the wait, not the write. Indices in Appended accept only Create. A
// document that its index does not allow, or whose member tenant_id is not the
// tenant, is *SchemaError before anything is written.
// An error that is neither this nor ErrStale leaves it unknown whether the write took
// place; the same write again is safe.
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
	// None is written unless all keep their schema. After another error some may
	// have been: the same call again writes the rest.
	Create(ctx context.Context, tenant, index string, docs ...Document) (created int, err error)
	// Project writes what follows from the journal, together where the store has
	// transactions: a reader then sees all of a call or nothing.
	Project(ctx context.Context, tenant, index string, p Projection) error
	Search(ctx context.Context, tenant, index string, q Query) (Page, error)
	// Aggregate counts what a query selects, whatever its order, in order of the
	// keys. More than MaxBuckets is an error.
	Aggregate(ctx context.Context, tenant, index string, q Query, a Aggregation) ([]Bucket, error)
	// Delete removes a document. Missing is fine.
	Delete(ctx context.Context, tenant, index, id string) error
	// Purge removes what a query selects, all pages of it, and returns how many
	// that were. A document that was written meanwhile stays.
	Purge(ctx context.Context, tenant, index string, q Query) (int, error)
}

// UserKeys is implemented by stores whose backups encrypt each user's documents under a key of the user.
// EraseUserKey destroys it, durably: no backup made before gives the user's documents, but with an
// older copy of the keys. Documents that the user gets later have another key.
//
// Crash: the key may be whole; erase it again.
type UserKeys interface {
	EraseUserKey(ctx context.Context, tenant, user string) error
}

// Refresher is implemented by stores whose searches lag: after Refresh they
// find what had been written to the indices before.
type Refresher interface {
	Refresh(ctx context.Context, indices ...string) error
}

// Scrubber is implemented by stores whose files retain what documents were. Scrub has the words that
// removed and replaced documents had before the call leave them, soon: it does not wait. A
// crash does not forget it.
type Scrubber interface {
	Scrub(ctx context.Context) error
}

// Fence decides whether a document may replace the stored one (nil:
// none). write false without an error means that no write is needed.
type Fence func(stored *int64, position int64) (write bool, err error)

// PutFence allows newer documents: a higher position replaces, an equal one was applied, a lower one is late.
func PutFence(stored *int64, position int64) (bool, error) {
	if stored != nil && position < *stored {
		return false, ErrStale
	}
	return stored == nil || position > *stored, nil
}

// NewerFence is PutFence for writers that may repeat documents: late ones are left out.
func NewerFence(stored *int64, position int64) (bool, error) {
	return stored == nil || position > *stored, nil
}

// SwapFence replaces exactly the expected version, and never by an older one:
// later writers are fenced by the position that it leaves.
func SwapFence(expected int64) Fence {
	return func(stored *int64, position int64) (bool, error) {
		at := NoPosition
		if stored != nil {
			at = *stored
		}
		if at != expected || position < at {
			return false, ErrStale
		}
		return true, nil
	}
}

// CreateFence never overwrites a document.
func CreateFence(stored *int64, _ int64) (bool, error) { return stored == nil, nil }

// Appended lists the indices that only grow, with the member that has their time. They
// take Create alone: a store may cut them by that time.
var Appended = map[string]string{IndexEvents: "ts", IndexSkillCalls: "ts"}

// MayChange refuses Put and Swap where documents never change.
func MayChange(index string) error {
	if _, ok := Appended[index]; ok {
		return fmt.Errorf("storage: %s only grows: its documents are created and never changed", index)
	}
	return nil
}
