package sqlite_test

import (
	"path/filepath"
	"testing"

	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/storage/storagetest"
)

func TestDocuments(t *testing.T) {
	storagetest.TestDocuments(t, func(t testing.TB) storage.Documents {
		t.Helper()
		return openDocuments(t, filepath.Join(t.TempDir(), "documents.db"))
	})
}

func openDocuments(t testing.TB, path string) *sqlite.Documents {
	t.Helper()
	d, err := sqlite.OpenDocuments(t.Context(), path, check)
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

// check is what the node passes: the schemas of the indices.
func check(index string, body []byte) (pointer, reason string, ok bool) {
	s, err := schemas.Storage(index)
	if err != nil {
		return "", "no such index", false
	}
	if v := s.ValidateBytes(body); len(v) > 0 {
		return v[0].Pointer, v[0].Reason, false
	}
	return "", "", true
}
