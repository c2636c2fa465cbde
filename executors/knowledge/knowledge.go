// Package knowledge stores documents of users and tenants in chunks, and finds the chunks by words
// and by vectors. Everything is in kb_chunks:
//
//	document   the added document: title, owner, number of chunks, state
//	chunk      some 800 tokens of its text, with an embedding where there is an embedder
//
// The id of a document is the digest of its content and its reader, and the ids of its chunks
// derive from it, so the same document twice is one. Documents are fenced by the position of the
// intent that wrote them last.
//
// A document is found as a whole or not at all: it is written as writing, then its chunks, then as
// live, and only chunks of live documents are found. A crash in between leaves chunks that nobody
// finds. The repeated intent continues with them; without one, a sweep removes them after an hour.
// A removed document stays as a tombstone for two days, so that an earlier intent that arrives late
// does not restore it.
package knowledge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/views"
)

// Name of the executor.
const Name = "knowledge"

// Config of the executor. Documents, Blobs and Now are required.
type Config struct {
	Documents storage.Documents
	Blobs     storage.Blobs
	Embedder  embed.Embedder  // makes vectors of the store's dimension; nil: parts are found by their words
	Reranker  *embed.Reranker // nil: none
	Now       func() time.Time
}

// Handlers of the executor.
func Handlers(cfg Config) map[string]executors.Handler {
	k := &knowledge{cfg}
	return executors.Fresh(cfg.Documents, map[string]executors.Handler{
		"kb.index": executors.WithArgs(k.index), "kb.search": executors.WithArgs(k.search),
		"kb.remove": executors.WithArgs(k.remove),
	}, searched)
}

// searched are the indices of the intents that search or remove chunks.
var searched = map[string][]string{
	"kb.index": {storage.IndexChunks}, "kb.search": {storage.IndexChunks}, "kb.remove": {storage.IndexChunks},
}

type knowledge struct{ Config }

// Kinds and states of records.
const (
	kindDocument = views.KnowledgeDocument
	kindChunk    = "chunk"

	stateWriting = "writing"
	stateLive    = views.KnowledgeLive
	stateRemoved = "removed"
)

// everybody is the reader of a tenant's documents.
const everybody = views.Everybody

// record is a document of kb_chunks.
type record struct {
	ID         string            `json:"id"`
	Tenant     string            `json:"tenant_id"`
	Kind       string            `json:"kind"`
	State      string            `json:"state,omitempty"`
	DocumentID string            `json:"document_id"`
	Reader     string            `json:"reader"`
	Title      string            `json:"title"`
	MediaType  string            `json:"media_type"`
	Source     string            `json:"source,omitempty"`
	Sources    []intents.Source  `json:"sources,omitempty"` // what its text is from
	Text       string            `json:"text,omitempty"`
	Embedding  []float32         `json:"embedding,omitempty"`
	Embedder   string            `json:"embedder,omitempty"`
	Ordinal    int               `json:"ordinal,omitempty"`
	Chunks     int               `json:"chunks,omitempty"`
	SizeBytes  int64             `json:"size_bytes,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Labels     []string          `json:"labels,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	TTLAt      *time.Time        `json:"ttl_at,omitempty"`
}

func (r record) scope() string {
	if r.Reader == everybody {
		return catalog.KnowledgeOfTenant
	}
	return catalog.KnowledgeOfUser
}

func readRecord(doc storage.Document) (r record, err error) {
	if err := json.Unmarshal(doc.Body, &r); err != nil {
		return r, executors.Fail(intents.ExecutorFailed, "stored knowledge cannot be read")
	}
	return r, nil
}

// head is a document with the version that was read; storage.Nobody: there is none.
type head struct {
	record
	position int64
}

func (k *knowledge) head(ctx context.Context, tenant, id string) (h head, err error) {
	doc, err := k.Documents.Get(ctx, tenant, storage.IndexChunks, id)
	if errors.Is(err, storage.ErrNotFound) {
		return head{position: storage.NoPosition}, nil
	}
	if err != nil {
		return h, executors.Store(err)
	}
	h.position = doc.Position
	h.record, err = readRecord(doc)
	return h, err
}

// swap writes a document over the version that was read.
func (k *knowledge) swap(ctx context.Context, was head, now record, position int64) error {
	doc, err := executors.Document(now.ID, position, now)
	if err != nil {
		return err
	}
	return executors.Store(k.Documents.Swap(ctx, now.Tenant, storage.IndexChunks, was.position, doc))
}

// readerOf is the reader of documents that an intent writes in a scope. A task writes only for its
// user.
func readerOf(o *executors.Intent, scope string) (string, error) {
	if scope != catalog.KnowledgeOfTenant {
		return o.Ticket.Actor.UserID, nil
	}
	if o.Ticket.Scope != nil {
		return "", refuse(intents.TaskScope, "/scope", "a task writes knowledge of its user: leave scope out")
	}
	return everybody, nil
}

// refuse names the wrong argument.
func refuse(code intents.Code, pointer, reason string) error {
	return executors.Fail(code, reason+" (at "+pointer+")").
		WithDetails(map[string]any{"violations": []map[string]string{{"pointer": pointer, "reason": reason}}})
}

// readers are the readers whose documents an intent may find.
func readers(o *executors.Intent) []string { return []string{o.Ticket.Actor.UserID, everybody} }

// labels are metadata as terms.
func labels(metadata map[string]string) []string {
	out := make([]string, 0, len(metadata))
	for key, value := range metadata {
		out = append(out, key+"="+value)
	}
	slices.Sort(out)
	return out
}
