package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

var askers = []intents.Role{intents.RoleTask, intents.RoleManager, intents.RoleGateway}

// askersAndOperators sign what the documents print without a grant, too.
var askersAndOperators = append([]intents.Role{intents.RoleOperator}, askers...)

var knowledgeRows = []Row{
	{Type: "kb.index", Title: "Add a document to the knowledge base", Capability: "kb:write", Signers: askers, Executor: "knowledge", Effect: Idempotent, DataAt: "/data", MaxRun: 2 * time.Minute},
	{Type: "kb.search", Title: "Search the knowledge base", Capability: "kb:read", Signers: askersAndOperators, Executor: "knowledge", Effect: Pure},
	{Type: "kb.remove", Title: "Remove a document from the knowledge base", Capability: "kb:write", Signers: askers, Executor: "knowledge", Effect: Idempotent},
}

// The scopes of knowledge: who finds it.
const (
	KnowledgeOfUser   = "user"
	KnowledgeOfTenant = "tenant"
)

// KBIndex are the arguments of kb.index: exactly one of Data, which is text, and From.
type KBIndex struct {
	Title      string            `json:"title"`
	Data       json.RawMessage   `json:"data,omitempty"`
	From       string            `json:"from,omitempty"`
	MediaType  string            `json:"media_type"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Scope      string            `json:"scope,omitempty"`      // default user
	Supersedes string            `json:"supersedes,omitempty"` // a document that this one replaces
}

// KBIndexResult is the result of kb.index.
type KBIndexResult struct {
	DocumentID string `json:"document_id"`
	Chunks     int    `json:"chunks"`
	SizeBytes  int64  `json:"size_bytes"` // of the text
	Embedder   string `json:"embedder,omitempty"`
	Existed    bool   `json:"existed,omitempty"`
}

// KBSearch are the arguments of kb.search. Filters name a member of documents (tenant,
// scope, document_id, media_type) or a key of their metadata, and must all hold.
type KBSearch struct {
	Q       string            `json:"q"`
	K       *int              `json:"k,omitempty"` // 1..50, default 5
	Filters map[string]string `json:"filters,omitempty"`
	Hybrid  *bool             `json:"hybrid,omitempty"` // default true
}

// KBSearchResult is the result of kb.search, best first.
type KBSearchResult struct {
	Hits     []KBHit  `json:"hits"`
	By       []string `json:"by"` // words, vectors
	Embedder string   `json:"embedder,omitempty"`
	Reranker string   `json:"reranker,omitempty"`
	Reason   string   `json:"reason,omitempty"` // why vectors or the reranker are missing
}

// KBHit is a part of a document.
type KBHit struct {
	DocumentID string            `json:"document_id"`
	ChunkID    string            `json:"chunk_id"`
	Chunk      int               `json:"chunk"`
	Title      string            `json:"title"`
	Text       string            `json:"text"`
	MediaType  string            `json:"media_type"`
	Scope      string            `json:"scope"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Source     string            `json:"source,omitempty"` // intent_id of the intent that added the document
	Scores     KBScores          `json:"scores"`
}

// KBScores say why a part was found. A list without the part gives no score.
type KBScores struct {
	Words  int      `json:"words,omitempty"`  // its place by words
	Vector float64  `json:"vector,omitempty"` // the cosine
	Fused  float64  `json:"fused"`
	Rerank *float64 `json:"rerank,omitempty"`
}

// KBList selects documents of the knowledge base.
type KBList struct {
	Limit int    `json:"limit,omitempty"` // 1..100, default 20
	After string `json:"after,omitempty"`
}

// KBListResult are documents that a user finds, newest first.
type KBListResult struct {
	Documents []KBDocument `json:"documents"`
	Cursor    string       `json:"cursor,omitempty"`
}

// KBDocument is a document of the knowledge base.
type KBDocument struct {
	DocumentID string            `json:"document_id"`
	Title      string            `json:"title"`
	MediaType  string            `json:"media_type"`
	Scope      string            `json:"scope"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Chunks     int               `json:"chunks"`
	SizeBytes  int64             `json:"size_bytes"`
	Source     string            `json:"source,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
}

// KBRemove are the arguments of kb.remove. Scope is that of the document.
type KBRemove struct {
	DocumentID string `json:"document_id"`
	Scope      string `json:"scope,omitempty"`
}

// KBRemoveResult is the result of kb.remove.
type KBRemoveResult struct {
	DocumentID string `json:"document_id"`
}
