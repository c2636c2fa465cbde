package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

var memoryRows = []Row{
	{Type: "write_memory", Title: "Store a step's result under its contract, or a moment", Capability: "memory:write", Signers: []intents.Role{intents.RoleTask, intents.RoleManager}, Executor: "memory", Effect: Idempotent, DataAt: "/data"},
	{Type: "read_memory", Title: "Read a memory by key", Capability: "memory:read", Signers: []intents.Role{intents.RoleTask, intents.RoleManager, intents.RoleGateway}, Executor: "memory", Effect: Idempotent, RandomKey: true},
	{Type: "memory.query", Title: "Search memories", Capability: "memory:read", Signers: []intents.Role{intents.RoleTask, intents.RoleManager, intents.RoleGateway}, Executor: "memory", Effect: Pure},
}

// WriteMemory are the arguments of write_memory. Exactly one of Data and From;
// From is an intent_id of the same step, a file id or cas://. The key is built
// by the executor: {tenant}:{session}:{task}:{label}. In scope moment, in which managers
// write, Data is a Moment and the key {session}:{label}.
type WriteMemory struct {
	Label string          `json:"label"` // [a-z0-9_]{1,64}
	Data  json.RawMessage `json:"data,omitempty"`
	From  string          `json:"from,omitempty"`
	Notes string          `json:"notes,omitempty"` // beside the data, for who answers or plans
	Scope string          `json:"scope,omitempty"` // session (default), user, tenant, moment
}

// ScopeMoment is the scope of what is remembered of conversations. A moment of KindChunk
// sums up turns of a session.
const (
	ScopeMoment = "moment"
	KindChunk   = "session_chunk"
)

// Moment is something worth remembering of a conversation.
type Moment struct {
	Kind  string `json:"kind,omitempty"` // default moment
	Text  string `json:"text"`
	Edges []Edge `json:"edges,omitempty"` // to other moments, or between them
}

// Edge links two moments by their keys.
type Edge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Kind   string  `json:"kind"`
	Weight float64 `json:"weight"` // 0 to 1
}

// WriteMemoryResult is the result of write_memory.
type WriteMemoryResult struct {
	Key       string `json:"key"`
	SizeBytes int64  `json:"size_bytes"`
	Validated bool   `json:"validated"`
}

// ReadMemory are the arguments of read_memory. Confirm says that the manager has read a
// step's result: the lock is released.
type ReadMemory struct {
	Key     string `json:"key"`
	Confirm bool   `json:"confirm,omitempty"`
}

// Reference represents a result of 50,000 bytes or more.
type Reference struct {
	FileID    string   `json:"file_id"`
	SizeBytes int64    `json:"size_bytes"`
	SHA256    string   `json:"sha256"`
	Sample    []string `json:"sample"` // first 20 lines, each cut at 2 KiB
}

// ReadMemoryResult is the result of read_memory: Data, or a Reference for a task.
type ReadMemoryResult struct {
	Key   string          `json:"key"`
	Data  json.RawMessage `json:"data,omitempty"`
	Notes string          `json:"notes,omitempty"`
	*Reference
}

// MemoryQuery are the arguments of memory.query. In a Mode it reads all that the user may
// see: memories, moments and messages. Without one it searches memories, for a task those
// of its step.
type MemoryQuery struct {
	Mode  string `json:"mode,omitempty"`
	Text  string `json:"text"`            // a text; of Lookup and Traverse a key, of SQL a statement
	TopK  int    `json:"top_k,omitempty"` // 1..50, default 5
	Scope string `json:"scope,omitempty"` // session, user, tenant; absent: all that the user may see
}

// The modes of memory.query.
const (
	Lookup   = "LOOKUP"   // the value of a key
	Search   = "SEARCH"   // by meaning where there is an embedder, else by words
	Fuzzy    = "FUZZY"    // by words, also by those that are spelt nearly so
	Traverse = "TRAVERSE" // the moments that edges lead to from a key, the nearest first
	SQL      = "SQL"      // a SELECT over views of the user's own rows
)

// The methods of memory.query.
const (
	ByVectors = "vectors" // by how alike the texts are, as far as the embedder knows
	ByWords   = "words"   // by the words of the question
	ByEdges   = "edges"   // from moment to moment
)

// MaxRows bounds the rows of a statement.
const MaxRows = 100

// MemoryHit is one memory found; in a Mode also a moment or a message.
type MemoryHit struct {
	Key       string    `json:"key"`
	Scope     string    `json:"scope"`
	Text      string    `json:"text"` // the stored JSON or text, cut at 2 KiB
	Source    string    `json:"source,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	Score     float64   `json:"score,omitempty"` // by vectors: the cosine, above 0, at most 1
	Edges     []Edge    `json:"edges,omitempty"` // of a moment

	Sources []intents.Source `json:"-"` // the report has them, for all hits
}

// MemoryQueryResult is the result of memory.query: of Lookup as of read_memory, of SQL
// Rows, else Hits.
type MemoryQueryResult struct {
	Hits     []MemoryHit `json:"hits,omitzero"`      // best first
	By       string      `json:"by,omitempty"`       // vectors, words, edges
	Embedder string      `json:"embedder,omitempty"` // by vectors: what made them; hashed ones are lexical
	Reason   string      `json:"reason,omitempty"`   // by words: why not by vectors

	*ReadMemoryResult
	Rows []map[string]any `json:"rows,omitzero"` // at most MaxRows
}
