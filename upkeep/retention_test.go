package upkeep

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// longAgo is a configuration whose clock is a hundred days behind.
func longAgo(dir string) node.Config {
	cfg := config(dir)
	cfg.Now = func() time.Time { return time.Now().AddDate(0, 0, -100) }
	return cfg
}

// keep puts a retention of a tenant, by a node with the configuration.
func keep(t *testing.T, cfg node.Config, tenant, key, value string) {
	t.Helper()
	n, err := node.Open(t.Context(), cfg)
	must(t, err)
	end := run(t, n)
	must(t, submit(t.Context(), n, cfg, "admin.put", catalog.AdminPut{Tenant: tenant, Data: &catalog.Data{Key: key, Value: json.RawMessage(value)}}))
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for behind := int64(1); behind > 0; <-look.C {
		s, err := ReadStorageStatus(t.Context(), cfg.Dir, cfg.Documents, 0)
		must(t, err)
		behind = s.Projections.Behind
	}
	must(t, end())
	must(t, n.Close())
}

// count counts the documents of an index of a tenant, those from long ago and others.
func count(t *testing.T, dir, tenant, index string) (old, young int) {
	t.Helper()
	keeping(t, dir, func(d storage.Documents) {
		docs, err := documentsOf(t.Context(), d, tenant, index)
		must(t, err)
		for _, doc := range docs {
			if storage.Older(index, doc.Body, time.Now().AddDate(0, 0, -50)) {
				old++
			} else {
				young++
			}
		}
	})
	return old, young
}

// TestRetention: documents past their tenant's retention are removed, neither a start nor a reindex
// makes them again, and the check does not miss them; missing retained documents are found.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	once(t, longAgo(dir)) // intents of tenant system
	want := func(index string, old bool, young int) {
		t.Helper()
		if o, y := count(t, dir, "system", index); o > 0 != old || y != young {
			t.Errorf("%s: %d old and %d young documents, not %v and %d", index, o, y, old, young)
		}
	}
	sound := func() {
		t.Helper()
		if h, err := Fsck(t.Context(), dir, nil); err != nil || !h.OK || !h.Compared {
			t.Errorf("%+v %v %v", h, h.FirstBad, err)
		}
	}
	collect := func(want bool) {
		t.Helper()
		if c, err := Collect(t.Context(), dir, datadir.DocumentsAt{}, time.Now()); err != nil || c.Old > 0 != want {
			t.Errorf("%+v %v", c, err)
		}
	}
	collect(false) // no retention allows a removal
	want(storage.IndexIntents, true, 0)

	keep(t, longAgo(dir), "system", state.RetentionKey, `{"agent_intents": 30}`)
	collect(true)
	want(storage.IndexIntents, false, 0)
	sound()

	once(t, config(dir)) // nothing in the index says up to where it was made
	want(storage.IndexIntents, false, 0)
	keep(t, config(dir), "default", "x.note", `1`) // by an intent of system
	want(storage.IndexIntents, false, 1)
	sound()
	_, made, err := Reindex(t.Context(), dir, datadir.DocumentsAt{}, storage.IndexIntents)
	if err != nil || made != 1 {
		t.Errorf("%d made: %v", made, err)
	}
	want(storage.IndexIntents, false, 1)

	// A longer retention from now on: removed documents stay removed, and are not missed.
	keep(t, config(dir), "system", state.RetentionKey, `{"agent_intents": 0}`)
	once(t, config(dir))
	want(storage.IndexIntents, false, 2)
	sound()

	execute(t, filepath.Join(dir, "documents.db"), `DELETE FROM documents WHERE row = (SELECT min(row) FROM documents
		WHERE space = (SELECT number FROM spaces WHERE name LIKE '%agent_intents'))`)
	if h, err := Fsck(t.Context(), dir, nil); err != nil || h.OK || h.FirstBad == nil {
		t.Errorf("a document that is kept was removed: %+v %v", h, err)
	}
}

// TestRetentionOfDefault: it applies to tenants without a retention of their own, while a node
// runs.
func TestRetentionOfDefault(t *testing.T) {
	dir := t.TempDir()
	keep(t, longAgo(dir), "default", "approval", `{}`)
	if old, _ := count(t, dir, "system", storage.IndexIntents); old == 0 {
		t.Fatal("nothing is old")
	}
	keep(t, config(dir), "system", state.DefaultRetentionKey, `{"agent_memory": 1, "agent_intents": 40}`)
	keeping(t, dir, func(d storage.Documents) {
		for id, text := range map[string]string{"default:s:t:old": "m", ":embedder": "none of ours"} {
			body, err := json.Marshal(map[string]any{
				"id": id, "tenant_id": "default", "scope": "tenant", "key": id, "text": text, "created_at": time.Now().AddDate(0, 0, -2).Format(time.RFC3339),
			})
			must(t, err)
			must(t, d.Put(t.Context(), "default", storage.IndexMemory, storage.Document{ID: id, Position: 1, Body: body}))
		}
	})
	n := open(t, config(dir))
	run(t, n)
	documents := documentsBeside(t, dir)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for old := true; old; <-look.C {
		docs, err := documentsOf(t.Context(), documents, "system", storage.IndexIntents)
		must(t, err)
		memories, err := documentsOf(t.Context(), documents, "default", storage.IndexMemory)
		must(t, err)
		if _, ours := memories[":embedder"]; !ours {
			t.Fatal("a document that is no memory was removed")
		}
		old = len(memories) > 1 || len(storage.Younger(storage.IndexIntents, inOrder(docs), time.Now().AddDate(0, 0, -50))) < len(docs)
	}
}

// TestExpiredMemoriesGo: a running node removes expired memories.
func TestExpiredMemoriesGo(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir)) // makes the tenant
	documents := documentsBeside(t, dir)
	memories(t, documents, time.Now().Add(-time.Hour))
	run(t, open(t, config(dir)))
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for err := error(nil); !errors.Is(err, storage.ErrNotFound); <-look.C {
		if _, err = documents.Get(t.Context(), "default", storage.IndexMemory, "m0"); t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
