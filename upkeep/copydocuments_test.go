package upkeep

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/storage"
)

// TestCopyFindsDifferences: additional and different documents of the target are reported, an
// interrupted copy is finished, and one that overlaps is refused.
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
