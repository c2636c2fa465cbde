package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// TestDocumentsOfVersion1: a file from before vectors and typed times is upgraded
// at opening, and its content is found by the new rules.
func TestDocumentsOfVersion1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "documents.db")
	d := openDocuments(t, path)
	for n := range 700 { // more than a batch
		if err := d.Put(t.Context(), "acme", storage.IndexMemory, benchDocument(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `DROP TABLE vocabulary; DROP TABLE vectors; DROP TABLE made; DROP INDEX documents_ttl; DROP INDEX terms_row; PRAGMA user_version=1;
		DROP INDEX documents_position; ALTER TABLE documents DROP COLUMN version; CREATE INDEX documents_position ON documents(space, position);
		UPDATE terms SET value = replace(value, '.000Z', 'Z') WHERE member = (SELECT number FROM members WHERE name = 'created_at');
		INSERT INTO terms SELECT space, member, 'stale', row FROM terms WHERE member = (SELECT number FROM members WHERE name = 'user_id');
		INSERT INTO text(text) VALUES ('delete-all')`)

	d = openDocuments(t, path)
	for name, c := range map[string]struct {
		q    storage.Query
		want int
	}{
		"by time":    {storage.Query{Ranges: map[string]storage.Range{"created_at": {GTE: "2026-11-03T00:00:00Z", LT: "2026-11-04T00:00:00Z"}}}, 25},
		"stale term": {storage.Query{Terms: map[string][]string{"user_id": {"stale"}}}, 0},
		"term":       {storage.Query{Terms: map[string][]string{"user_id": {"u7"}}}, 14},
		"text":       {storage.Query{Text: "note", Limit: 1000}, 700},
	} {
		page, err := d.Search(t.Context(), "acme", storage.IndexMemory, c.q)
		if err != nil || len(page.Documents) != c.want {
			t.Errorf("%s: %d documents, %v; want %d", name, len(page.Documents), err, c.want)
		}
	}
	// A later write removes what was indexed again.
	changed := benchDocument(0)
	changed.Position = 1000
	changed.Body = []byte(strings.Replace(string(changed.Body), "2026-11-01T", "2025-11-01T", 1))
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, changed); err != nil {
		t.Fatal(err)
	}
	page, err := d.Search(t.Context(), "acme", storage.IndexMemory, storage.Query{Ranges: map[string]storage.Range{"created_at": {LT: "2026-01-01T00:00:00Z"}}})
	if err != nil || len(page.Documents) != 1 {
		t.Fatalf("%d documents, %v", len(page.Documents), err)
	}
}

// TestDocumentsOfTomorrow: a file of a newer program is refused.
func TestDocumentsOfTomorrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "documents.db")
	if err := openDocuments(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "PRAGMA user_version=99")
	if d, err := sqlite.OpenDocuments(t.Context(), path, check, 0); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Fatalf("%v, %v", d, err)
	}
}

func execute(t *testing.T, path, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReindexDocuments: entries that were harmed are made again of the bodies.
func TestReindexDocuments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "documents.db")
	d := openDocuments(t, path)
	for n := range 10 {
		if err := d.Put(t.Context(), "acme", storage.IndexMemory, benchDocument(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `DELETE FROM terms WHERE member = (SELECT number FROM members WHERE name = 'user_id');
		INSERT INTO terms SELECT space, (SELECT number FROM members WHERE name = 'user_id'), 'wrong', row FROM documents;
		DELETE FROM text WHERE rowid = (SELECT max(rowid) FROM text)`)
	ask := func(q storage.Query) int {
		d := openDocuments(t, path)
		page, err := d.Search(t.Context(), "acme", storage.IndexMemory, q)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		return len(page.Documents)
	}
	wrong, right, words := storage.Query{Terms: map[string][]string{"user_id": {"wrong"}}}, storage.Query{Terms: map[string][]string{"user_id": {"u7"}}}, storage.Query{Text: "note"}
	if ask(wrong) != 10 || ask(right) != 0 || ask(words) != 9 {
		t.Fatal("an opening makes them again")
	}
	if n, err := sqlite.ReindexDocuments(t.Context(), path); err != nil || n != 10 {
		t.Fatalf("%d documents: %v", n, err)
	}
	if w, r, x := ask(wrong), ask(right), ask(words); w != 0 || r != 1 || x != 10 {
		t.Errorf("finds %d, %d and %d", w, r, x)
	}
}
