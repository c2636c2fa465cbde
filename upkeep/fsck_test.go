package upkeep

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage/sqlite"
)

// TestFsck: a data directory is sound while it is used and after; each possible manipulation is
// found and named; and nothing is written.
func TestFsck(t *testing.T) {
	dir := t.TempDir()
	t.Run("used", func(t *testing.T) {
		n := open(t, config(dir))
		run(t, n)
		for _, value := range []string{"1", "2", "3"} {
			if err := submit(t.Context(), n, config(dir), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.note", Value: json.RawMessage(value)}}); err != nil {
				t.Fatal(err)
			}
		}
		published(t, n)
		if h, err := Fsck(t.Context(), dir, nil); err != nil || !h.OK || h.Compared || h.Records < 7 || h.Leaves != h.Records || h.Blobs < 3 {
			t.Fatalf("%+v %v %v", h, h.FirstBad, err)
		}
	})
	before := contents(t, dir)
	h, err := Fsck(t.Context(), dir, nil)
	if err != nil || !h.OK || !h.Compared || h.Projections < 4 || h.Behind != 0 || h.Pending != 0 {
		t.Fatalf("%+v %v %v", h, h.FirstBad, err)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("the check has written: %s", diff)
	}
	last := h.Records - 1

	for name, c := range map[string]struct {
		harm   func(t *testing.T, dir string)
		at     int64
		reason string
	}{
		"a record was changed": {func(t *testing.T, dir string) {
			t.Helper()
			execute(t, filepath.Join(dir, "journal", "journal.db"), `UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '"OK"', '"KO"') AS BLOB) WHERE position = 4`)
		}, 4, ""},
		"a record is missing": {func(t *testing.T, dir string) {
			t.Helper()
			execute(t, filepath.Join(dir, "journal", "journal.db"), `DELETE FROM records WHERE position = 4`)
		}, 4, "gap"},
		"the last record is missing": {func(t *testing.T, dir string) {
			t.Helper()
			execute(t, filepath.Join(dir, "journal", "journal.db"), `DELETE FROM records WHERE position = `+jsonOf(t, last))
		}, -1, "older copy"},
		"a document is missing": {func(t *testing.T, dir string) {
			t.Helper()
			execute(t, filepath.Join(dir, "documents.db"), `DELETE FROM documents WHERE rowid = (SELECT min(rowid) FROM documents)`)
		}, 1, "is missing"},
		"a document was changed": {func(t *testing.T, dir string) {
			t.Helper()
			execute(t, filepath.Join(dir, "documents.db"), `UPDATE documents SET body = replace(body, 'admin.put', 'admin.out')`)
		}, 1, "is not what the journal makes"},
		"a leaf was changed": {func(t *testing.T, dir string) {
			t.Helper()
			edit(t, filepath.Join(dir, "ledger", "tile", "entries"))
		}, -1, ""},
		"what decided is gone": {func(t *testing.T, dir string) {
			t.Helper()
			remove(t, filepath.Join(dir, "blobs"))
		}, 0, "blob sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			harmed := t.TempDir()
			if err := os.CopyFS(harmed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			private(t, harmed)
			c.harm(t, harmed)
			h, err := Fsck(t.Context(), harmed, nil)
			if err != nil || h.OK || h.FirstBad == nil || h.FirstBad.Position != c.at || !strings.Contains(h.FirstBad.Reason, c.reason) {
				t.Errorf("%+v %v %v", h, h.FirstBad, err)
			}
		})
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// contents are the digests of all files, except those that SQLite creates beside a database to read
// it.
func contents(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	for _, path := range filesBelow(t, dir) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) == 0 && strings.HasSuffix(path, ".db-wal") || strings.HasSuffix(path, ".db-shm") {
			continue
		}
		out[path] = sha256.Sum256(raw)
	}
	return out
}

// filesBelow returns the files below a directory, at least one.
func filesBelow(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatal(dir, err)
	}
	return out
}

// private gives keys their required mode.
func private(t *testing.T, dir string) {
	t.Helper()
	for _, path := range filesBelow(t, filepath.Join(dir, "keys")) {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// edit changes a bit in the middle of each file.
func edit(t *testing.T, dir string) {
	t.Helper()
	for _, path := range filesBelow(t, dir) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)/2] ^= 1
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// remove removes all files below a directory.
func remove(t *testing.T, dir string) {
	t.Helper()
	for _, path := range filesBelow(t, dir) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// execute changes a database as its own process never would.
func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatal("nothing was changed", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFsckMissingKeys: a key file that is missing is named, and so is the first record that has
// lost its parts with it.
func TestFsckMissingKeys(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir))
	file := filepath.Join(dir, sqlite.KeysName, "0000000001")
	must(t, os.Remove(file))
	h, err := Fsck(t.Context(), dir, nil)
	if err != nil || h.OK || len(h.Unexplained) == 0 || h.FirstBad.Position != h.Unexplained[0].Position || !strings.Contains(h.FirstBad.Reason, file) {
		t.Errorf("%+v %v %v", h, h.FirstBad, err)
	}
}
