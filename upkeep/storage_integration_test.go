//go:build integration

package upkeep

import (
	"slices"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// TestIntegrationStorage: documents move to an OpenSearch and back unchanged, a node continues with
// them there, and projections are made again there.
func TestIntegrationStorage(t *testing.T) {
	server := opensearchtest.Shared(t)
	dir, back := t.TempDir(), t.TempDir()
	answered(t, dir)
	// Reading the status makes nothing.
	s, err := ReadStorageStatus(t.Context(), dir, datadir.DocumentsAt{URL: server, Prefix: "moved-"}, 0)
	if err != nil || s.Backend != "opensearch" || s.Documents.Count != 0 || s.Projections.Behind == 0 {
		t.Errorf("%+v %v", s, err)
	}
	if d, err := datadir.RemoteDocuments(datadir.DocumentsAt{URL: server, Prefix: "moved-"}); err != nil {
		t.Error(err)
	} else if missing, err := d.Missing(t.Context()); err != nil || !slices.Contains(missing, storage.IndexIntents) {
		t.Errorf("%v %v", missing, err)
	}
	keeping(t, dir, func(d storage.Documents) {
		memories(t, d, time.Now().Add(time.Hour))
	})
	remote := datadir.DocumentsAt{URL: server, Prefix: "moved-", Dimension: storage.DefaultDimension}
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
	removed, made, err := Reindex(t.Context(), dir, remote, storage.IndexIntents)
	if err != nil || removed == 0 || made != removed {
		t.Errorf("%d removed, %d made: %v", removed, made, err)
	}
	s, err = ReadStorageStatus(t.Context(), dir, remote, 0)
	for end := time.Now().Add(time.Minute); err == nil && s.Documents.Count < 4 && time.Now().Before(end); { // until the index shows them
		s, err = ReadStorageStatus(t.Context(), dir, remote, 0)
	}
	if err != nil || s.Backend != "opensearch" || s.Documents.Count < 4 {
		t.Errorf("%+v %v", s, err)
	}
	rows, err := ReindexSearch(t.Context(), dir, remote, "")
	total := int64(0)
	for _, r := range rows {
		total += r.Documents
	}
	if err != nil || len(rows) != len(storage.Indices)-len(storage.Appended) || total == 0 {
		t.Errorf("%v %v", rows, err)
	}
	once(t, cfg)

	// Documents past a retention are removed there, too, and whole months if no tenant retains
	// them.
	keep(t, cfg, "system", state.DefaultRetentionKey, `{"agent_intents": 1, "agent_events": 1}`)
	look, err := datadir.RemoteDocuments(remote)
	must(t, err)
	must(t, seeAll(t.Context(), look))
	if c, err := Collect(t.Context(), dir, remote, time.Now().AddDate(0, 3, 0)); err != nil || c.Old == 0 {
		t.Errorf("%+v %v", c, err)
	}
	must(t, seeAll(t.Context(), look))
	must(t, look.Close())
	s, err = ReadStorageStatus(t.Context(), dir, remote, 0)
	must(t, err)
	for _, index := range s.Indices {
		if gone := index.Index == storage.IndexIntents || index.Index == storage.IndexEvents; gone && index.Documents > 0 {
			t.Errorf("%+v", index)
		}
	}
}
