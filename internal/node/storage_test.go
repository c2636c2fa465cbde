package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// memories writes m0, which is over a second before a time, and m1, which is over a
// second after it, of tenant default.
func memories(t *testing.T, d storage.Documents, around time.Time) {
	t.Helper()
	for i, over := range []time.Time{around.Add(-time.Second), around.Add(time.Second)} {
		body := fmt.Sprintf(`{"id":"m%d","tenant_id":"default","session_id":"s","task_id":"t","user_id":"u","scope":"session","key":"k%d",
			"source":"test","text":"word","step_index":1,"created_at":"2026-11-20T10:00:00Z","ttl_at":%q}`, i, i, over.UTC().Format(time.RFC3339Nano))
		must(t, d.Put(t.Context(), "default", storage.IndexMemory, storage.Document{ID: fmt.Sprintf("m%d", i), Position: int64(i), Body: []byte(body)}))
	}
}

// keeping opens the documents of a directory that no node uses.
func keeping(t *testing.T, dir string, use func(storage.Documents)) {
	t.Helper()
	u, err := openUpkeep(t.Context(), dir, Documents{})
	must(t, err)
	use(u.documents)
	must(t, u.Close())
}

// TestCollect removes a memory that is over, and no other.
func TestCollect(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	once(t, config(dir))
	keeping(t, dir, func(d storage.Documents) { memories(t, d, now) })
	for _, want := range []int{1, 0} {
		if c, err := Collect(t.Context(), dir, Documents{}, now); err != nil || c.Expired != want {
			t.Errorf("%+v %v, not %d", c, err, want)
		}
	}
	keeping(t, dir, func(d storage.Documents) {
		if _, err := d.Get(t.Context(), "default", storage.IndexMemory, "m1"); err != nil {
			t.Error(err)
		}
	})
}

// TestCollectBlobs: what nobody named in days goes; what decided, of which records
// name only the list, stays.
func TestCollectBlobs(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir))
	blobs, err := blobdir.Open(filepath.Join(dir, "blobs"))
	must(t, err)
	ref, _, err := blobs.Keep(t.Context(), "default", strings.NewReader("nobody names this"))
	must(t, err)
	count := func(age time.Duration) (files int) {
		must(t, filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			files++
			at := time.Now().Add(-age)
			return os.Chtimes(path, at, at)
		}))
		return files
	}
	before := count(blobAge - time.Hour)
	for _, step := range []struct {
		age  time.Duration
		want int
	}{{blobAge + time.Hour, 0}, {0, 1}} {
		if c, err := Collect(t.Context(), dir, Documents{}, time.Now()); err != nil || c.Blobs != step.want {
			t.Errorf("%+v %v, not %d", c, err, step.want)
		}
		if left := count(step.age); left != before-step.want {
			t.Errorf("%d of %d files left", left, before)
		}
	}
	if _, _, err := blobs.Fetch(t.Context(), "default", ref); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the unnamed blob: %v", err)
	}
}

// TestExpiredMemoriesGo while a node runs: it removes those that are over.
func TestExpiredMemoriesGo(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir)) // makes the tenant
	n := open(t, config(dir))
	memories(t, n.documents, n.cfg.Now().Add(-time.Hour))
	run(t, n)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for err := error(nil); !errors.Is(err, storage.ErrNotFound); <-look.C {
		if _, err = n.documents.Get(t.Context(), "default", storage.IndexMemory, "m0"); t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestReindex: documents that are gone, or are not what the journal makes, are made
// again.
func TestReindex(t *testing.T) {
	dir := t.TempDir()
	ordered(t, dir)
	ordered(t, dir)
	keeping(t, dir, func(d storage.Documents) {
		docs, err := documentsOf(t.Context(), d, "system", storage.IndexOrders)
		must(t, err)
		list := inOrder(docs)
		must(t, d.Delete(t.Context(), "system", storage.IndexOrders, list[0].ID))
		list[1].Position += 1000
		list[1].Body = bytes.ReplaceAll(list[1].Body, []byte("admin.put"), []byte("admin.out"))
		must(t, d.Put(t.Context(), "system", storage.IndexOrders, list[1]))
	})
	if h, err := Fsck(t.Context(), dir, nil); err != nil || h.OK {
		t.Fatalf("nothing was changed: %+v %v", h, err)
	}
	for _, index := range projections {
		if _, _, err := Reindex(t.Context(), dir, Documents{}, index); err != nil {
			t.Fatal(err)
		}
	}
	if h, err := Fsck(t.Context(), dir, nil); err != nil || !h.OK || !h.Compared {
		t.Errorf("%+v %v %v", h, h.FirstBad, err)
	}
}

// TestCopyFindsDifferences: what the target has besides or otherwise is told, a
// copy that was cut off is finished, and one that overlaps is refused.
func TestCopyFindsDifferences(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	once(t, config(dir))
	keeping(t, dir, func(d storage.Documents) { memories(t, d, time.Now()) })
	differ := func(resume bool) (different []string) {
		t.Helper()
		rows, err := CopyDocuments(t.Context(), dir, Place{Dir: dir}, Place{Dir: to}, resume)
		must(t, err)
		total := int64(0)
		for _, r := range rows {
			if total += r.Documents; !r.OK {
				different = append(different, r.Tenant+"/"+r.Index)
			}
		}
		if total < 3 {
			t.Fatalf("%d documents", total)
		}
		return different
	}
	if d := differ(false); d != nil {
		t.Error(d)
	}
	if _, err := CopyDocuments(t.Context(), dir, Place{Dir: dir}, Place{Dir: to}, false); !errors.Is(err, ErrTargetHolds) {
		t.Error(err)
	}
	db := filepath.Join(to, "documents.db")
	execute(t, db, `DELETE FROM documents WHERE id = 'm1'`)
	if d := differ(true); d != nil {
		t.Error(d)
	}
	execute(t, db, `UPDATE documents SET body = replace(body, 'word', 'other') WHERE id = 'm1'`)
	if d := differ(true); len(d) != 1 || d[0] != "default/agent_memory" {
		t.Error(d)
	}
}
