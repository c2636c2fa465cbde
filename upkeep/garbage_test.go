package upkeep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// memories writes m0, which expires a second before a time, and m1, which expires a second after
// it, of tenant default.
func memories(t *testing.T, d storage.Documents, around time.Time) {
	t.Helper()
	for i, over := range []time.Time{around.Add(-time.Second), around.Add(time.Second)} {
		body := fmt.Sprintf(`{"id":"m%d","tenant_id":"default","session_id":"s","task_id":"t","user_id":"u","scope":"session","key":"k%d",
			"source":"test","text":"word","step_index":1,"created_at":"2026-11-20T10:00:00Z","ttl_at":%q}`, i, i, over.UTC().Format(time.RFC3339Nano))
		must(t, d.Put(t.Context(), "default", storage.IndexMemory, storage.Document{ID: fmt.Sprintf("m%d", i), Position: int64(i), Body: []byte(body)}))
	}
}

// TestCollect: an expired memory is removed, and no other.
func TestCollect(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	once(t, config(dir))
	keeping(t, dir, func(d storage.Documents) { memories(t, d, now) })
	for _, want := range []int{1, 0} {
		if c, err := Collect(t.Context(), dir, datadir.DocumentsAt{}, now); err != nil || c.Expired != want {
			t.Errorf("%+v %v, not %d", c, err, want)
		}
	}
	keeping(t, dir, func(d storage.Documents) {
		if _, err := d.Get(t.Context(), "default", storage.IndexMemory, "m1"); err != nil {
			t.Error(err)
		}
	})
}

// TestCollectBlobs: blobs that no record has named for days are removed; policies and catalogs, of
// which records name only the list, stay.
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
		if c, err := Collect(t.Context(), dir, datadir.DocumentsAt{}, time.Now()); err != nil || c.Blobs != step.want {
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
