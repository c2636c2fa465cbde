//go:build integration

package memory_test

import (
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/opensearch/servertest"
)

// TestIntegrationMemory: what holds on the store of one process holds on an
// OpenSearch.
func TestIntegrationMemory(t *testing.T) {
	server, err := servertest.Start(t.Context(), servertest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	store := func(t *testing.T, prefix string) *opensearch.Documents {
		t.Helper()
		d, err := opensearch.Open(opensearch.Config{
			URL: server.URL, Prefix: prefix, Dimension: dimension, Check: storage.NewCheck(dimension),
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
	t.Run("Near", func(t *testing.T) {
		d := store(t, "near-")
		nearMemories(t, on(t, d, hashed(t)), func() {
			if err := d.Refresh(t.Context(), storage.IndexMemory); err != nil {
				t.Fatal(err)
			}
		})
	})
}
