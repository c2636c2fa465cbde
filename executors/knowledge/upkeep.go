package knowledge

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/storage"
)

// Embedded are the chunks, whose vectors may come later.
var Embedded = executors.EmbeddedIndex{Index: storage.IndexChunks, Text: func(doc storage.Document) (string, error) {
	r, err := readRecord(doc)
	return r.embeddable(), err
}}

// Bounds of Upkeep.
const (
	upkeepPage = 100
	// abandoned is how old a document is that nobody is still writing or removing.
	abandoned = time.Hour
)

// Upkeep removes leftovers of crashes.
type Upkeep struct {
	Documents storage.Documents
	Tenants   func() []string
	Now       func() time.Time
	Log       *slog.Logger
}

// Run goes through all tenants immediately and then periodically, until ctx ends, which is not an
// error. Failures are logged and retried.
func (u Upkeep) Run(ctx context.Context) error {
	return executors.EachTenant(ctx, u.Tenants, u.Log, "the upkeep of knowledge failed", func(tenant string) error { return u.Sweep(ctx, tenant) })
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
	case h.State == stateWriting: // first its state: an intent that still writes it is refused at its end
		err = k.bury(ctx, h, h.position)
	default:
		err = k.dropChunks(ctx, tenant, id)
	}
	if errors.Is(err, storage.ErrStale) {
		err = nil
	}
	return err
}
