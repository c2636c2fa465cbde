package sqlite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// anything may be stored.
func anything(string, []byte, any) (pointer, reason string, ok bool) { return "", "", true }

// within returns the files below a directory that contain a word.
func within(t *testing.T, dir, word string) (files []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if raw, err := os.ReadFile(path); err != nil || bytes.Contains(bytes.ToLower(raw), []byte(word)) {
			files = append(files, fmt.Sprint(filepath.Base(path), err))
		}
	}
	return files
}

// TestScrub: the words of documents that were removed and replaced leave the file, its text index and
// its write-ahead log, while readers come and go, and others stay. A scrub that was interrupted is
// done by the next opening.
func TestScrub(t *testing.T) {
	for _, how := range []string{"at once", "by the next opening"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "documents.db")
			d, err := sqlite.OpenDocuments(t.Context(), path, anything, 0)
			if err != nil {
				t.Fatal(err)
			}
			put := func(i int, position int64, word string) {
				t.Helper()
				body := fmt.Sprintf(`{"tenant_id":"acme","plan_id":"p%d","task":"%s number %d %s"}`, i, word, i, bytes.Repeat([]byte("padding "), 500))
				if err := d.Put(t.Context(), "acme", storage.IndexPlans, storage.Document{ID: fmt.Sprint("p", i), Position: position, Body: json.RawMessage(body)}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 300 {
				put(i, 1, "annasword")
				put(i+1000, 1, "bellasword")
			}
			if len(within(t, dir, "annasword")) == 0 {
				t.Fatal("the test looks in the wrong place")
			}
			for i := range 300 {
				if i%2 == 0 {
					put(i, 2, "erased")
				} else if err := d.Delete(t.Context(), "acme", storage.IndexPlans, fmt.Sprint("p", i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Scrub(t.Context()); err != nil {
				t.Fatal(err)
			}
			if how != "at once" {
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				if d, err = sqlite.OpenDocuments(t.Context(), path, anything, 0); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { _ = d.Close() })
			if err := clock.Every(t.Context(), 10*time.Millisecond, func() bool {
				_, err := d.Search(t.Context(), "acme", storage.IndexPlans, storage.Query{Text: "bellasword"})
				return err != nil || len(within(t, dir, "annasword")) == 0
			}); err != nil {
				t.Fatalf("%v: still in %v", err, within(t, dir, "annasword"))
			}
			page, err := d.Search(t.Context(), "acme", storage.IndexPlans, storage.Query{Text: "bellasword", Limit: 1000})
			if err != nil || len(page.Documents) != 300 {
				t.Errorf("%d documents are found: %v", len(page.Documents), err)
			}
			if page, err = d.Search(t.Context(), "acme", storage.IndexPlans, storage.Query{Text: "annasword"}); err != nil || len(page.Documents) != 0 {
				t.Errorf("%d documents are found: %v", len(page.Documents), err)
			}
		})
	}
}
