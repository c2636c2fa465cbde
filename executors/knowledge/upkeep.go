package knowledge

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
)

// unembedded is the embedder of chunks that have no vector.
const unembedded = "none"

// Times of Upkeep.
const (
	upkeepEvery = time.Hour
	upkeepAgain = time.Minute // after a failure
	upkeepPage  = 100
	// abandoned is how old a document is that nobody is still writing or removing.
	abandoned = time.Hour
)

// Upkeep makes the vectors that chunks lack, all of them where another embedder made them, and
// removes what crashes have left. Embedder may be nil: then it makes none.
type Upkeep struct {
	Documents storage.Documents
	Embedder  embed.Embedder
	Tenants   func() []string
	Now       func() time.Time
	Log       *slog.Logger
}

// Run goes through all tenants at once and then again and again, until ctx ends; that is no
// error. What fails is logged and tried again.
func (u Upkeep) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next := upkeepEvery
		for _, tenant := range u.Tenants() {
			made, err := u.Fill(ctx, tenant)
			if made > 0 {
				u.Log.LogAttrs(ctx, slog.LevelInfo, "made vectors of knowledge", slog.String("tenant", tenant), slog.Int("chunks", made))
			}
			if err = errors.Join(err, u.Sweep(ctx, tenant)); err != nil && ctx.Err() == nil {
				next = upkeepAgain
				u.Log.LogAttrs(ctx, slog.LevelWarn, "the upkeep of knowledge failed", slog.String("tenant", tenant), slog.String("error", err.Error()))
			}
		}
		_ = clock.Sleep(ctx, next) // the loop checks ctx
	}
	return nil
}

// Fill makes the vectors of a tenant's chunks that this embedder has not made, and returns
// how many. A search compares with vectors of its own embedder alone, so none is compared with
// those of another; until a chunk has its vector it is found by its words. The documents keep
// their positions. After an error or a crash the same call makes the rest.
func (u Upkeep) Fill(ctx context.Context, tenant string) (made int, err error) {
	if u.Embedder == nil {
		return 0, nil
	}
	for _, other := range []storage.Range{{LT: u.Embedder.Name()}, {GT: u.Embedder.Name()}} { // none is looked at that has its vector
		for after := ""; ; {
			page, err := u.Documents.Search(ctx, tenant, storage.IndexChunks, storage.Query{
				Terms: map[string][]string{"kind": {kindChunk}}, Ranges: map[string]storage.Range{"embedder": other}, Sort: "id", After: after, Limit: batch,
			})
			if err != nil {
				return made, err
			}
			n, err := u.fill(ctx, page.Documents)
			if made += n; err != nil {
				return made, err
			}
			if after = page.Cursor; after == "" {
				break
			}
		}
	}
	return made, nil
}

// fill makes the vectors of one page. A chunk that was written meanwhile is left as it is.
func (u Upkeep) fill(ctx context.Context, docs []storage.Document) (made int, err error) {
	if len(docs) == 0 {
		return 0, nil
	}
	chunks := make([]record, len(docs))
	for i, doc := range docs {
		if chunks[i], err = readRecord(doc); err != nil {
			return 0, err
		}
	}
	if err := embedAll(ctx, u.Embedder, chunks); err != nil {
		return 0, err
	}
	for i, c := range chunks {
		doc, err := executors.Document(c.ID, docs[i].Position, c)
		if err != nil {
			return made, err
		}
		switch err := u.Documents.Swap(ctx, c.Tenant, storage.IndexChunks, docs[i].Position, doc); {
		case err == nil:
			made++
		case !errors.Is(err, storage.ErrStale):
			return made, err
		}
	}
	return made, nil
}

// Sweep removes the chunks of documents that are not live and that nobody writes any more,
// and forgets removed documents that have been remembered for long enough.
func (u Upkeep) Sweep(ctx context.Context, tenant string) error {
	k := &knowledge{Config{Documents: u.Documents, Now: u.Now}}
	for after := ""; ; {
		page, err := u.Documents.Search(ctx, tenant, storage.IndexChunks, storage.Query{
			Terms: map[string][]string{"kind": {kindDocument}, "state": {stateWriting, stateRemoved}}, Sort: "id", After: after, Limit: upkeepPage,
		})
		if err != nil {
			return err
		}
		for _, doc := range page.Documents {
			if err := u.sweep(ctx, k, tenant, doc.ID); err != nil {
				return err
			}
		}
		if after = page.Cursor; after == "" {
			return nil
		}
	}
}

// sweep looks at a document as it is now.
func (u Upkeep) sweep(ctx context.Context, k *knowledge, tenant, id string) error {
	h, err := k.head(ctx, tenant, id)
	switch {
	case err != nil || h.Kind != kindDocument || h.State == stateLive:
		return err
	case h.TTLAt != nil && h.TTLAt.Before(u.Now()):
		return u.Documents.Delete(ctx, tenant, storage.IndexChunks, id)
	case h.State == stateWriting && h.CreatedAt.Add(abandoned).After(u.Now()):
		return nil
	case h.State == stateWriting: // first its state: an order that still writes it is refused at its end
		err = k.bury(ctx, h, h.position)
	default:
		err = k.dropChunks(ctx, tenant, id)
	}
	if errors.Is(err, storage.ErrStale) {
		err = nil
	}
	return err
}
