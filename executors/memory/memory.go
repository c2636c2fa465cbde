// Package memory stores the results of steps, and memories of a user or a tenant. A
// memory is one document of agent_memory under a key that is built here:
//
//	{tenant}:{session}:{task}:{label}     acme:sess_456:task_789:outlet_ids
//
// The parts are identifiers, so none contains a colon. Writing checks the data against the ticket's
// return_spec, takes an advisory lock on tenant, scope, owner and label, and is fenced by the
// ticket's position. The lock prevents two tasks from overwriting data that a manager has not read
// yet; the position protects the document.
package memory

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "memory"

// MaxSize bounds one memory in bytes of JSON: an extract, not raw data.
const MaxSize = 1 << 20

// How long memories are served.
const (
	SessionTTL = 7 * 24 * time.Hour
	UserTTL    = 90 * 24 * time.Hour // user and tenant scope
)

// The scopes of memories; session is the default.
const (
	scopeSession = "session"
	scopeUser    = "user"
	scopeTenant  = "tenant"
)

// Config of the executor. All members but Embedder, Builtins and Wait are required.
type Config struct {
	Documents storage.Documents
	Embedder  embed.Embedder // makes vectors of the store's dimension; nil: memories are found by their words
	Blobs     storage.Blobs
	Builtins  []json.RawMessage // rows of the built-in agents, as agent_schemas has those of others
	Now       func() time.Time
	// Wait sleeps between two attempts to take a lock; nil: clock.Sleep. It returns
	// ctx's error if that ends first.
	Wait func(ctx context.Context, d time.Duration) error
}

// Handlers of the executor.
func Handlers(cfg Config) map[string]executors.Handler {
	if cfg.Wait == nil {
		cfg.Wait = clock.Sleep
	}
	m := &memory{cfg}
	return executors.Fresh(cfg.Documents, map[string]executors.Handler{
		"write_memory": executors.WithArgs(m.write), "read_memory": executors.WithArgs(m.read), "memory.query": executors.WithArgs(m.query),
	}, searched)
}

// searched are the indices that intents search.
var searched = map[string][]string{"memory.query": {storage.IndexMemory, storage.IndexMoments, storage.IndexMessages, storage.IndexSchemas}}

type memory struct{ Config }

// record is a document of agent_memory. Locks are records too: they
// have a locked_by and no text.
type record struct {
	ID          string           `json:"id"`
	Tenant      string           `json:"tenant_id"`
	Session     string           `json:"session_id,omitempty"`
	Task        string           `json:"task_id,omitempty"`
	User        string           `json:"user_id,omitempty"`
	Scope       string           `json:"scope"`
	Key         string           `json:"key"`
	Source      string           `json:"source,omitempty"` // intent_id of the intent that wrote it
	Skills      []string         `json:"skills,omitempty"` // that the step could call
	Sources     []intents.Source `json:"sources,omitempty"`
	Plan        string           `json:"plan_id,omitempty"`
	LockedBy    string           `json:"locked_by,omitempty"`
	Text        string           `json:"text"` // the data as JSON
	Notes       string           `json:"notes,omitempty"`
	StepIndex   int              `json:"step_index,omitempty"`
	Ask         string           `json:"ask,omitempty"` // the call that asked for the task; empty: it is the step's own
	LockExpires *time.Time       `json:"lock_expires,omitempty"`
	CreatedAt   time.Time        `json:"created_at"`
	TTLAt       *time.Time       `json:"ttl_at,omitempty"`
	Embedding   []float32        `json:"embedding,omitempty"` // of embeddable
	Embedder    string           `json:"embedder,omitempty"`  // that made it; of a memory only
}

// key builds the full key; callers choose the label only.
func key(tenant, session, task, label string) string {
	return strings.Join([]string{tenant, session, task, label}, ":")
}

// label is the last part of a key.
func (r record) label() string { return r.Key[strings.LastIndexByte(r.Key, ':')+1:] }

// expired memories are never served.
func (r record) expired(now time.Time) bool { return r.TTLAt != nil && !r.TTLAt.After(now) }

func (r record) document(position int64) (storage.Document, error) {
	return executors.Document(r.ID, position, r)
}

// get reads a record and the version of its document.
func (m *memory) get(ctx context.Context, tenant, id string) (record, int64, error) {
	doc, err := m.Documents.Get(ctx, tenant, storage.IndexMemory, id)
	if err != nil {
		return record{}, 0, err
	}
	var r record
	if err := json.Unmarshal(doc.Body, &r); err != nil {
		return record{}, 0, executors.Fail(intents.ExecutorFailed, "a stored memory cannot be read")
	}
	return r, doc.Position, nil
}

// timestamp is how times are stored: UTC, milliseconds.
func timestamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// EmbedWait bounds how long an intent waits for its vector. A memory is then
// written without one, and a question is answered by words.
const EmbedWait = 5 * time.Second

// Embedded are the memories, whose vectors may come later.
var Embedded = executors.EmbeddedIndex{Index: storage.IndexMemory, Text: func(doc storage.Document) (string, error) {
	var r record
	err := json.Unmarshal(doc.Body, &r)
	return r.embeddable(), err
}}

// embeddable is the text of a memory's vector: its label, the only part of its key in words, and
// its data.
func (r record) embeddable() string {
	return strings.ReplaceAll(r.label(), "_", " ") + "\n" + r.Text
}
