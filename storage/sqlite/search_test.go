package sqlite_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/storage"
)

// TestExpiredAreNoNeighbours: what has expired is left out of the ranked
// searches, which read no document to know it, with a filter and without.
func TestExpiredAreNoNeighbours(t *testing.T) {
	d := openDocuments(t, filepath.Join(t.TempDir(), "documents.db"))
	values := make([]float32, dimension)
	values[0] = 1
	embedding := "[1" + strings.Repeat(",0", len(values)-1) + "]"
	for n, ttl := range []string{"2026-11-20T09:59:59Z", "2026-11-20T10:00:00Z", "2026-11-20T10:00:01Z", ""} {
		doc := benchDocument(n)
		more := fmt.Sprintf(`{"embedding":%s,`, embedding)
		if ttl != "" {
			more += fmt.Sprintf(`"ttl_at":%q,`, ttl)
		}
		doc.Body = []byte(more + strings.TrimPrefix(string(doc.Body), "{"))
		if err := d.Put(t.Context(), "acme", storage.IndexMemory, doc); err != nil {
			t.Fatal(err)
		}
	}
	for name, q := range map[string]storage.Query{
		"text":   {Text: "note"},
		"vector": {Vector: &storage.Vector{Member: "embedding", Values: values}},
	} {
		for _, terms := range []map[string][]string{nil, {"scope": {"session"}}} {
			q.Now, q.Terms = "2026-11-20T10:00:00Z", terms
			page, err := d.Search(t.Context(), "acme", storage.IndexMemory, q)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, doc := range page.Documents {
				ids = append(ids, doc.ID)
			}
			if slices.Sort(ids); !slices.Equal(ids, []string{"1", "2", "3"}) {
				t.Errorf("%s of %v: %v", name, terms, ids)
			}
		}
	}
}
