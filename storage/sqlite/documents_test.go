package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

func openDocuments(t testing.TB, path string) *sqlite.Documents {
	t.Helper()
	d, err := sqlite.OpenDocuments(t.Context(), path, check, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestProjectIsOneTransaction: a projection is seen whole or not at all, whatever is written at the same time.
func TestProjectIsOneTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "documents.db")
	d := openDocuments(t, path)
	const size, rounds = 50, 40
	ended := make(chan error, 1)
	go func() {
		for round := range rounds {
			var p storage.Projection
			for n := range size {
				p.Put = append(p.Put, moved(benchDocument(n), int64(round)))
			}
			if err := d.Project(t.Context(), "acme", storage.IndexMemory, p); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		page, err := d.Search(t.Context(), "acme", storage.IndexMemory, storage.Query{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(page.Documents); n != 0 && n != size {
			t.Fatalf("%d of %d documents", n, size)
		}
		for _, doc := range page.Documents {
			if doc.Position != page.Documents[0].Position {
				t.Fatalf("positions %d and %d", page.Documents[0].Position, doc.Position)
			}
		}
		if !running && (len(page.Documents) == 0 || page.Documents[0].Position != rounds-1) {
			t.Fatal("the last round is not there")
		}
	}
}

func moved(doc storage.Document, position int64) storage.Document {
	doc.Position = position
	return doc
}

func TestDocumentsReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "documents.db")
	d, err := sqlite.OpenDocuments(t.Context(), path, check, 0)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := d.Put(t.Context(), "acme", storage.IndexMemory, benchDocument(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, benchDocument(9)); !errors.Is(err, sqlite.ErrClosed) {
		t.Fatalf("put after close: %v", err)
	}
	if _, err := d.Get(t.Context(), "acme", storage.IndexMemory, "1"); !errors.Is(err, sqlite.ErrClosed) {
		t.Fatalf("get after close: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	d = openDocuments(t, path)
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, benchDocument(4)); err != nil {
		t.Fatal(err)
	}
	page, err := d.Search(t.Context(), "acme", storage.IndexMemory, storage.Query{Text: "note"})
	if err != nil || len(page.Documents) != 4 {
		t.Fatalf("%d documents, %v", len(page.Documents), err)
	}
}

// dimension of the embeddings that the store under test is made for.
const dimension = 4

// check is what the node passes.
var check = storage.NewCheck(dimension)
