package memory

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
)

// EmbedWait bounds how long an order waits for its vector. A memory is then
// written without one, and a question is answered by words.
const EmbedWait = 5 * time.Second

// embeddable is the text that a memory's vector is made of: its label, which is the one
// part of its key in words, and its data.
func (r record) embeddable() string {
	return strings.ReplaceAll(r.label(), "_", " ") + "\n" + r.Text
}

// Times of Embeddings.
const (
	FillEvery = time.Hour
	fillAgain = time.Minute // after a failure
	fillPage  = 50          // memories that are read and embedded at a time
)

// Embeddings makes the vectors that memories lack: of those that were written
// while the embedder failed or there was none, and all of them where another
// embedder made them.
type Embeddings struct {
	Documents storage.Documents
	Embedder  embed.Embedder
	Tenants   func() []string
	Now       func() time.Time
	Log       *slog.Logger
}

// Run goes through the memories of all tenants at once and then again and again,
// until ctx ends; that is no error. What fails is logged and tried again.
func (e Embeddings) Run(ctx context.Context) error {
	looked := map[string]time.Time{} // when the memories of a tenant were looked at, all of which then had vectors
	for ctx.Err() == nil {
		next := FillEvery
		for _, tenant := range e.Tenants() {
			began := e.Now()
			made, err := e.fillSince(ctx, tenant, looked[tenant])
			if err == nil {
				looked[tenant] = began
			}
			switch {
			case err != nil && ctx.Err() == nil:
				next = fillAgain
				e.Log.LogAttrs(ctx, slog.LevelWarn, "memories have no vectors yet", slog.String("tenant", tenant), slog.String("error", err.Error()))
			case made > 0:
				e.Log.LogAttrs(ctx, slog.LevelInfo, "made vectors of memories", slog.String("tenant", tenant), slog.Int("memories", made))
			}
		}
		_ = clock.Sleep(ctx, next) // the loop checks ctx
	}
	return nil
}

// markID is the document whose source names the embedder that made the vectors of a
// tenant. Like a lock it is not a memory.
const markID = ownPrefix + "embedder"

// Fill makes the missing vectors of a tenant's memories, and all of them if the mark
// does not name this embedder. It returns how many it made. The documents keep their
// positions, so that no later write is refused because of it. A memory that is written
// at the same time is left as it is. After an error or a crash, the same call makes the
// rest.
func (e Embeddings) Fill(ctx context.Context, tenant string) (made int, err error) {
	return e.fillSince(ctx, tenant, time.Time{})
}

// lateWrite is how long before a look a memory may have got its time and not been there.
const lateWrite = time.Hour

// fillSince is Fill for memories written since a look; zero: for all.
func (e Embeddings) fillSince(ctx context.Context, tenant string, since time.Time) (made int, err error) {
	m := &memory{Config{Documents: e.Documents}}
	mark, version, err := m.get(ctx, tenant, markID)
	if errors.Is(err, storage.ErrNotFound) {
		version, err = storage.Nobody, nil
	}
	if err != nil {
		return 0, err
	}
	others := mark.Source != e.Embedder.Name() // also when there is no mark yet
	var when map[string]storage.Range
	if !since.IsZero() && !others {
		when = map[string]storage.Range{"created_at": {GTE: intents.FormatTime(since.Add(-lateWrite))}}
	}
	for after := ""; ; {
		page, err := e.Documents.Search(ctx, tenant, storage.IndexMemory, storage.Query{Ranges: when, After: after, Limit: fillPage, Now: intents.FormatTime(e.Now())})
		if err != nil {
			return made, err
		}
		n, err := e.fill(ctx, tenant, page.Documents, others)
		made += n
		if err != nil {
			return made, err
		}
		if after = page.Cursor; after == "" {
			break
		}
	}
	if mark.Source == e.Embedder.Name() {
		return made, nil
	}
	doc, err := record{
		ID: markID, Key: markID, Tenant: tenant, Scope: scopeTenant, Source: e.Embedder.Name(), CreatedAt: timestamp(e.Now()),
	}.document(version + 1)
	if err != nil {
		return made, err
	}
	if err := e.Documents.Swap(ctx, tenant, storage.IndexMemory, version, doc); !errors.Is(err, storage.ErrStale) {
		return made, err
	}
	return made, nil // another process has written the mark
}

// fill makes the vectors of one page; all: also where there is one.
func (e Embeddings) fill(ctx context.Context, tenant string, docs []storage.Document, all bool) (made int, err error) {
	var (
		lacking  []record
		versions []int64
		texts    []string
	)
	for _, doc := range docs {
		var r record
		if err := json.Unmarshal(doc.Body, &r); err != nil || isLock(r) || len(r.Embedding) > 0 && !all {
			continue
		}
		lacking, versions, texts = append(lacking, r), append(versions, doc.Position), append(texts, r.embeddable())
	}
	if len(texts) == 0 {
		return 0, nil
	}
	vectors, err := e.Embedder.Embed(ctx, texts)
	if err != nil {
		return 0, err
	}
	for i, r := range lacking {
		r.Embedding = vectors[i]
		doc, err := r.document(versions[i])
		if err != nil {
			return made, err
		}
		switch err := e.Documents.Swap(ctx, tenant, storage.IndexMemory, versions[i], doc); {
		case err == nil:
			made++
		case !errors.Is(err, storage.ErrStale):
			return made, err
		}
	}
	return made, nil
}
