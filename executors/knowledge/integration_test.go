//go:build integration

package knowledge_test

import (
	"context"
	"testing"

	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// TestIntegrationKnowledge: what holds on the store of one process holds on an OpenSearch.
func TestIntegrationKnowledge(t *testing.T) {
	server := opensearchtest.Shared(t)
	store := func(t *testing.T, prefix string) current {
		t.Helper()
		d, err := opensearch.Open(opensearch.Config{URL: server, Prefix: prefix, Dimension: dimension, Check: storage.NewCheck(dimension)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if err := d.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return current{d}
	}
	t.Run("Added", func(t *testing.T) { addedDocuments(t, store(t, "added-")) })
	t.Run("NewEmbedder", func(t *testing.T) { newEmbedder(t, store(t, "embedder-")) })
	t.Run("HybridIsBest", func(t *testing.T) {
		d := store(t, "hybrid-")
		hybridIsBest(t, d.Documents, 3, func() {
			if err := d.Refresh(t.Context(), storage.IndexChunks); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// current finds what was written before, as a node sees to.
type current struct{ *opensearch.Documents }

func (c current) Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	if err := c.Refresh(ctx, index); err != nil {
		return storage.Page{}, err
	}
	return c.Documents.Search(ctx, tenant, index, q)
}

func (c current) Aggregate(ctx context.Context, tenant, index string, q storage.Query, a storage.Aggregation) ([]storage.Bucket, error) {
	if err := c.Refresh(ctx, index); err != nil {
		return nil, err
	}
	return c.Documents.Aggregate(ctx, tenant, index, q, a)
}

func (c current) Purge(ctx context.Context, tenant, index string, q storage.Query) (int, error) {
	if err := c.Refresh(ctx, index); err != nil {
		return 0, err
	}
	return c.Documents.Purge(ctx, tenant, index, q)
}
