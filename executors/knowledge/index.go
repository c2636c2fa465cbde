package knowledge

import (
	"context"
	"io"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

const (
	// EmbedWait bounds how long an intent waits for the vectors of a document. Chunks are then
	// written without vectors and get them later.
	EmbedWait = 5 * time.Second
	// batch is how many chunks are embedded and written at a time.
	batch = 64
	// keptRemoved is the retention of a removed document's tombstone: intents that could arrive
	// late have expired by then.
	keptRemoved = 2 * storage.KeptFor
)

// index adds a document: checked completely, then written; the package comment describes what a
// crash leaves.
func (k *knowledge) index(ctx context.Context, o *executors.Intent, args catalog.KBIndex) (*executors.Result, error) {
	doc, texts, err := k.document(ctx, o, args)
	if err != nil {
		return nil, err
	}
	old, err := k.superseded(ctx, o, args, doc)
	if err != nil {
		return nil, err
	}
	was, err := k.head(ctx, doc.Tenant, doc.ID)
	if err != nil {
		return nil, err
	}
	out := catalog.KBIndexResult{DocumentID: doc.ID, Chunks: doc.Chunks, SizeBytes: doc.SizeBytes}
	switch {
	case was.State == stateLive:
		out.Existed = was.Source != doc.Source
	case was.position > o.Ticket.Position:
		return nil, executors.Store(storage.ErrStale)
	default:
		if out.Embedder, err = k.write(ctx, o, was, doc, texts); err != nil {
			return nil, err
		}
	}
	if old.ID != "" {
		err = k.bury(ctx, old, o.Ticket.Position)
	}
	return &executors.Result{Value: out}, err
}

// document reads what an intent adds. Nothing is written.
func (k *knowledge) document(ctx context.Context, o *executors.Intent, args catalog.KBIndex) (doc record, texts []string, err error) {
	reader, err := readerOf(o, args.Scope)
	if err != nil {
		return doc, nil, err
	}
	for name := range args.Metadata {
		if slices.Contains(members, name) {
			return doc, nil, refuse(intents.MalformedArgs, "/metadata/"+name, "a filter of this name is about the document itself: choose another name")
		}
	}
	at := "/data"
	if args.From != "" {
		at = "/from"
	}
	content, err := o.Content(ctx, k.Blobs, "/data", args.Data)
	if err != nil {
		return doc, nil, err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, MaxDocument+1))
	if err != nil {
		return doc, nil, executors.Store(err)
	}
	text, err := textOf(ctx, o.Ticket.Actor.Tenant, args.MediaType, raw)
	switch {
	case ctx.Err() != nil:
		return doc, nil, ctx.Err()
	case err != nil:
		return doc, nil, refuse(intents.MalformedArgs, at, err.Error())
	}
	texts = chunks(text)
	actor := o.Ticket.Actor
	named := []string{actor.Tenant, reader, args.Title, args.MediaType, intents.Digest([]byte(text))}
	doc = record{
		ID: digest(append(named, labels(args.Metadata)...)...), Tenant: actor.Tenant, Kind: kindDocument, State: stateWriting, Reader: reader,
		Title: args.Title, MediaType: args.MediaType, Source: o.ID, Chunks: len(texts), SizeBytes: int64(len(text)),
		Metadata: args.Metadata, Labels: labels(args.Metadata), CreatedAt: k.Now().UTC().Truncate(time.Millisecond),
	}
	doc.DocumentID, doc.Sources = doc.ID, o.Ticket.Sources
	if o.Context.PlanID == "" { // a person has added it
		doc.Sources = intents.DocumentSource(doc.ID)
	}
	return doc, texts, nil
}

// digest of texts, each of which is bounded by its own digest.
func digest(texts ...string) string {
	var all []byte
	for _, text := range texts {
		all = append(all, intents.Digest([]byte(text))...)
	}
	return intents.Digest(all)
}

// superseded is the document that a new one replaces; the actor must be allowed to remove it. None
// if it is the same.
func (k *knowledge) superseded(ctx context.Context, o *executors.Intent, args catalog.KBIndex, doc record) (head, error) {
	if args.Supersedes == "" || args.Supersedes == doc.ID {
		return head{}, nil
	}
	old, err := k.head(ctx, doc.Tenant, args.Supersedes)
	if err == nil && !removable(old, doc.Reader, o.Ticket.Position) {
		err = refuse(intents.NotFound, "/supersedes", "there is no such document in this scope")
	}
	return old, err
}

// removable documents are live, or were removed by the same intent.
func removable(h head, reader string, position int64) bool {
	return h.Kind == kindDocument && h.Reader == reader && (h.State == stateLive || h.State == stateRemoved && h.position == position)
}

// write makes a document live and returns the embedder of its vectors; empty: some are missing.
func (k *knowledge) write(ctx context.Context, o *executors.Intent, was head, doc record, texts []string) (embedder string, err error) {
	position := o.Ticket.Position
	if err := k.swap(ctx, was, doc, position); err != nil {
		return "", err
	}
	if k.Embedder != nil {
		embedder = k.Embedder.Name()
	}
	wait, cancel := context.WithTimeout(ctx, EmbedWait)
	defer cancel()
	for first := 0; first < len(texts); first += batch {
		part := k.chunksOf(doc, texts, first)
		if !k.embed(wait, part) {
			embedder = ""
		}
		if err := k.put(ctx, part, position); err != nil {
			return "", err
		}
	}
	live := doc
	live.State = stateLive
	err = k.swap(ctx, head{doc, position}, live, position)
	return embedder, err
}

func (k *knowledge) chunksOf(doc record, texts []string, first int) []record {
	out := make([]record, 0, batch)
	for i, text := range texts[first:min(first+batch, len(texts))] {
		c := doc
		c.Kind, c.State, c.Chunks, c.SizeBytes = kindChunk, "", 0, 0
		c.ID, c.Ordinal, c.Text, c.Embedder = digest(doc.ID, strconv.Itoa(first+i)), first+i, text, executors.Unembedded
		out = append(out, c)
	}
	return out
}

func (k *knowledge) put(ctx context.Context, records []record, position int64) error {
	docs := make([]storage.Document, len(records))
	for i, r := range records {
		var err error
		if docs[i], err = executors.Document(r.ID, position, r); err != nil {
			return err
		}
	}
	return executors.Store(k.Documents.Project(ctx, records[0].Tenant, storage.IndexChunks, storage.Projection{Put: docs}))
}

// embed gives chunks their vectors, if the embedder makes them now.
func (k *knowledge) embed(ctx context.Context, chunks []record) bool {
	if k.Embedder == nil || ctx.Err() != nil {
		return false
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.embeddable()
	}
	vectors, err := k.Embedder.Embed(ctx, texts)
	if err != nil {
		return false
	}
	for i := range chunks {
		chunks[i].Embedding, chunks[i].Embedder = vectors[i], k.Embedder.Name()
	}
	return true
}

// embeddable is the text that the vector of a chunk is made of.
func (r record) embeddable() string { return r.Title + "\n" + r.Text }

// remove makes a document unfindable.
func (k *knowledge) remove(ctx context.Context, o *executors.Intent, args catalog.KBRemove) (*executors.Result, error) {
	reader, err := readerOf(o, args.Scope)
	if err != nil {
		return nil, err
	}
	old, err := k.head(ctx, o.Ticket.Actor.Tenant, args.DocumentID)
	if err != nil {
		return nil, err
	}
	if !removable(old, reader, o.Ticket.Position) {
		return nil, refuse(intents.NotFound, "/document_id", "there is no such document in this scope")
	}
	if err := k.bury(ctx, old, o.Ticket.Position); err != nil {
		return nil, err
	}
	return &executors.Result{Value: catalog.KBRemoveResult{DocumentID: old.ID}}, nil
}

// bury removes a document: first its state, then its chunks.
func (k *knowledge) bury(ctx context.Context, old head, position int64) error {
	if old.State != stateRemoved {
		gone := old.record
		until := k.Now().Add(keptRemoved).UTC().Truncate(time.Millisecond)
		gone.State, gone.TTLAt = stateRemoved, &until
		if err := k.swap(ctx, old, gone, position); err != nil {
			return err
		}
	}
	return k.dropChunks(ctx, old.Tenant, old.ID)
}

func (k *knowledge) dropChunks(ctx context.Context, tenant, id string) error {
	_, err := k.Documents.Purge(ctx, tenant, storage.IndexChunks, storage.Query{Terms: map[string][]string{"kind": {kindChunk}, "document_id": {id}}})
	return executors.Store(err)
}
