package blobdir_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// records is a journal that names the given digests.
type records struct {
	storage.Records
	list []storage.Record
}

func (r records) Next() int64 { return int64(len(r.list)) }

func (r records) Scan(_ context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for _, rec := range r.list[from:] {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// TestCollect: only what is old, of a requested tenant, and named by no
// record is removed; what was stored again is young.
func TestCollect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	b := open(t, dir)
	refs := make(map[string]string)
	for tenant, names := range map[string]string{"acme": "named plain unnamed again", "system": "policy"} {
		for name := range strings.FieldsSeq(names) {
			ref, _, err := b.Keep(t.Context(), tenant, strings.NewReader(name))
			if err != nil {
				t.Fatal(err)
			}
			refs[name] = ref
		}
	}
	old := time.Now().Add(-2 * time.Hour)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"again": "again", "young": "young"} {
		if refs[name], _, err = b.Keep(t.Context(), "acme", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	part := func(s string) storage.Record {
		return storage.Record{Parts: map[string]json.RawMessage{"envelope": json.RawMessage(`{"x":"` + s + `"}`)}}
	}
	log := records{list: []storage.Record{part(refs["named"]), part(strings.TrimPrefix(refs["plain"], "cas://"))}}
	for i := range log.list {
		log.list[i].Position = int64(i)
	}
	removed, err := storage.Collect(t.Context(), b, log, []string{"acme", "nobody"}, time.Hour)
	if err != nil || removed != 1 {
		t.Fatalf("collect = %d, %v", removed, err)
	}
	again, err := blobdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, ref := range refs {
		tenant := "acme"
		if name == "policy" {
			tenant = "system"
		}
		f, _, err := again.Fetch(t.Context(), tenant, ref)
		if gone := errors.Is(err, storage.ErrNotFound); gone != (name == "unnamed") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestDropSparesTheYoung: a blob that was stored again after it was listed is not dropped.
func TestDropSparesTheYoung(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "blobs"))
	ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if gone, err := b.Drop(t.Context(), "acme", ref, time.Hour); gone || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
	if gone, err := b.Drop(t.Context(), "acme", ref, -time.Hour); !gone || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
}
