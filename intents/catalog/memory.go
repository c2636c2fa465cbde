package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

var memoryRows = []Row{
	{Type: "write_memory", Title: "Store a step's result under its contract", Capability: "memory:write", Signers: []intents.Role{intents.RoleTask}, Executor: "memory", Effect: Idempotent, DataAt: "/data"},
	{Type: "read_memory", Title: "Read a memory by key", Capability: "memory:read", Signers: []intents.Role{intents.RoleTask, intents.RoleManager, intents.RoleGateway}, Executor: "memory", Effect: Idempotent, RandomKey: true},
	{Type: "memory.query", Title: "Search memories", Capability: "memory:read", Signers: []intents.Role{intents.RoleTask, intents.RoleManager, intents.RoleGateway}, Executor: "memory", Effect: Pure},
}

// WriteMemory are the arguments of write_memory. Exactly one of Data and From;
// From is an intent_id of the same step, a file id or cas://. The key is built
// by the executor: {tenant}:{session}:{task}:{label}.
type WriteMemory struct {
	Label string          `json:"label"` // [a-z0-9_]{1,64}
	Data  json.RawMessage `json:"data,omitempty"`
	From  string          `json:"from,omitempty"`
	Scope string          `json:"scope,omitempty"` // session (default), user, tenant
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

// Reference stands for a result of 50,000 bytes or more.
type Reference struct {
	FileID    string   `json:"file_id"`
	SizeBytes int64    `json:"size_bytes"`
	SHA256    string   `json:"sha256"`
	Sample    []string `json:"sample"` // first 20 lines, each cut at 2 KiB
}

// ReadMemoryResult is the result of read_memory: Data, or a Reference for a task.
type ReadMemoryResult struct {
	Key  string          `json:"key"`
	Data json.RawMessage `json:"data,omitempty"`
	*Reference
}

// MemoryQuery are the arguments of memory.query.
type MemoryQuery struct {
	Text  string `json:"text"`
	TopK  int    `json:"top_k,omitempty"` // 1..50, default 5
	Scope string `json:"scope,omitempty"` // session, user, tenant; absent: all that the user may see
}

// How memory.query found what it found.
const (
	ByVectors = "vectors" // by how alike the texts are, as far as the embedder knows
	ByWords   = "words"   // by the words of the question
)

// MemoryHit is one memory found.
type MemoryHit struct {
	Key       string    `json:"key"`
	Scope     string    `json:"scope"`
	Text      string    `json:"text"` // the stored JSON, cut at 2 KiB
	Source    string    `json:"source,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	Score     float64   `json:"score,omitempty"` // by vectors: the cosine, above 0, at most 1
}

// MemoryQueryResult is the result of memory.query.
type MemoryQueryResult struct {
	Hits     []MemoryHit `json:"hits"`               // best first
	By       string      `json:"by"`                 // vectors, words
	Embedder string      `json:"embedder,omitempty"` // by vectors: what made them; hashed ones are lexical
	Reason   string      `json:"reason,omitempty"`   // by words: why not by vectors
}
