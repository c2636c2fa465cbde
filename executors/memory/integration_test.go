//go:build integration

package memory_test

import (
	"testing"

	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// TestIntegrationMemory: what holds on the store of one process holds on an
// OpenSearch.
func TestIntegrationMemory(t *testing.T) {
	server := opensearchtest.Shared(t)
	store := func(t *testing.T, prefix string) *opensearch.Documents {
		t.Helper()
		d, err := opensearch.Open(opensearch.Config{
			URL: server, Prefix: prefix, Dimension: dimension, Check: storage.NewCheck(dimension),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if err := d.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Run("Writers", func(t *testing.T) { writersLoseNothing(t, store(t, "writers-")) })
	t.Run("Dialect", func(t *testing.T) {
		d := store(t, "dialect-")
		b := recalled(t, on(t, d, nil))
		if err := d.Refresh(t.Context(), storage.Indices...); err != nil {
			t.Fatal(err)
		}
		for mode, text := range map[string]string{"SQL": "SELECT LEFT(content, 5) AS said FROM messages WHERE message_type = 'user'", "FUZZY": "baot"} {
			if got := b.runQuery(t, asks("ana", mode, text)); len(got.Rows) != 1 && len(got.Hits) != 2 {
				t.Errorf("%s: %+v", mode, got)
			}
		}
	})
	t.Run("Near", func(t *testing.T) {
		d := store(t, "near-")
		nearMemories(t, on(t, d, hashed(t)), func() {
			if err := d.Refresh(t.Context(), storage.IndexMemory); err != nil {
				t.Fatal(err)
			}
		})
	})
}
