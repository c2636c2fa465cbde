//go:build integration

package node

import (
	"context"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch/servertest"
)

// TestIntegrationStorage: documents move to an OpenSearch and back the same, a
// node goes on with them there, and projections are made again there.
func TestIntegrationStorage(t *testing.T) {
	server, err := servertest.Start(context.Background(), servertest.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	dir, back := t.TempDir(), t.TempDir()
	ordered(t, dir)
	keeping(t, dir, func(d storage.Documents) {
		memories(t, d, time.Now().Add(time.Hour))
	})
	remote := Documents{URL: server.URL, Prefix: "moved-", Dimension: storage.DefaultDimension}
	same := func(from, to Place) {
		t.Helper()
		rows, err := CopyDocuments(t.Context(), dir, from, to, false)
		must(t, err)
		total := int64(0)
		for _, r := range rows {
			if total += r.Copied; !r.OK {
				t.Errorf("%+v", r)
			}
		}
		if total < 4 {
			t.Errorf("%d documents", total)
		}
	}
	same(Place{Dir: dir}, Place{Remote: remote})
	same(Place{Remote: remote}, Place{Dir: back})

	cfg := config(dir)
	cfg.Documents = remote
	once(t, cfg)
	removed, made, err := Reindex(t.Context(), dir, remote, storage.IndexOrders)
	if err != nil || removed == 0 || made != removed {
		t.Errorf("%d removed, %d made: %v", removed, made, err)
	}
	s, err := ReadStorageStatus(t.Context(), dir, remote, 0)
	if err != nil || s.Backend != "opensearch" || s.Documents.Count < 4 {
		t.Errorf("%+v %v", s, err)
	}
}
