package executors

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// Unembedded is the embedder of a document that has no vector yet.
const Unembedded = "none"

// Times of EachTenant.
const (
	tenantsEvery = time.Hour
	tenantsRetry = time.Minute // after a failure
)

// backfillPage is how many documents are read and embedded at a time.
const backfillPage = 50

// EmbeddedIndex is an index whose documents may have a vector of their text in the member
// embedding; the member embedder names the embedder that made it. Unembedded: it is missing. A
// document without an embedder has no vector.
type EmbeddedIndex struct {
	Index string
	Text  func(storage.Document) (string, error)
}

// embedder is the part of embed.Embedder that Backfill uses.
type embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	Name() string
}

// Backfill makes the vectors of documents that were written while the embedder failed or there
// was none, and all that another embedder has made. A search compares with vectors of its own
// embedder alone, so none is compared with those of another.
type Backfill struct {
	Documents storage.Documents
	Embedder  embedder
	Indices   []EmbeddedIndex
	Tenants   func() []string
	Log       *slog.Logger
}

// Run goes through all tenants immediately and then periodically, until ctx ends, which is not an
// error. Failures are logged and retried.
func (b Backfill) Run(ctx context.Context) error {
	return EachTenant(ctx, b.Tenants, b.Log, "documents have no vectors yet", func(tenant string) error {
		made, err := b.Fill(ctx, tenant)
		if made > 0 {
			b.Log.LogAttrs(ctx, slog.LevelInfo, "made vectors of documents", slog.String("tenant", tenant), slog.Int("documents", made))
		}
		return err
	})
}

// EachTenant does something for all tenants immediately and then periodically, until ctx ends, which
// is not an error. A failure is logged with a text, and soon all is done again.
func EachTenant(ctx context.Context, tenants func() []string, log *slog.Logger, failed string, do func(tenant string) error) error {
	for ctx.Err() == nil {
		next := tenantsEvery
		for _, tenant := range tenants() {
			if err := do(tenant); err != nil && ctx.Err() == nil {
				next = tenantsRetry
				log.LogAttrs(ctx, slog.LevelWarn, failed, slog.String("tenant", tenant), slog.String("error", err.Error())) //nolint:sloglint // its callers give literals
			}
		}
		_ = clock.Sleep(ctx, next) // the loop checks ctx
	}
	return nil
}

// Fill makes the missing vectors of this embedder for a tenant's documents and returns their
// number. The documents retain their positions, so no later write is refused because of it. After
// an error or a crash the same call makes the rest.
func (b Backfill) Fill(ctx context.Context, tenant string) (made int, err error) {
	for _, of := range b.Indices {
		for _, other := range []storage.Range{{LT: b.Embedder.Name()}, {GT: b.Embedder.Name()}} { // documents that have their vector are skipped
			n, err := b.fill(ctx, tenant, of, storage.Query{Ranges: map[string]storage.Range{"embedder": other}, Sort: "id", Limit: backfillPage})
			if made += n; err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

func (b Backfill) fill(ctx context.Context, tenant string, of EmbeddedIndex, q storage.Query) (made int, err error) {
	for {
		page, err := b.Documents.Search(ctx, tenant, of.Index, q)
		if err != nil {
			return made, err
		}
		n, err := b.embed(ctx, tenant, of, page.Documents)
		if made += n; err != nil {
			return made, err
		}
		if q.After = page.Cursor; q.After == "" {
			return made, nil
		}
	}
}

// embed makes the vectors of one page. A document that was written meanwhile is left as it is.
func (b Backfill) embed(ctx context.Context, tenant string, of EmbeddedIndex, docs []storage.Document) (made int, err error) {
	if len(docs) == 0 {
		return 0, nil
	}
	texts := make([]string, len(docs))
	for i, doc := range docs {
		if texts[i], err = of.Text(doc); err != nil {
			return 0, err
		}
	}
	vectors, err := b.Embedder.Embed(ctx, texts)
	if err != nil {
		return 0, err
	}
	for i, doc := range docs {
		vector := map[string]any{"embedding": vectors[i], "embedder": b.Embedder.Name()}
		if doc.Body, err = with(doc.Body, vector); err != nil {
			return made, err
		}
		switch err := b.Documents.Swap(ctx, tenant, of.Index, doc.Position, doc); {
		case err == nil:
			made++
		case !errors.Is(err, storage.ErrStale):
			return made, err
		}
	}
	return made, nil
}

// with is a JSON object with other members in it; the rest stays as it is, byte by byte.
func with(object []byte, others map[string]any) ([]byte, error) {
	var members map[string]json.RawMessage
	more, err := json.Marshal(others)
	if err := errors.Join(err, json.Unmarshal(object, &members), json.Unmarshal(more, &members)); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}
