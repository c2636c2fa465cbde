package upkeep

import (
	"bytes"
	"testing"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
)

// TestReindex: missing documents, and those that do not match the journal, are made again.
func TestReindex(t *testing.T) {
	dir := t.TempDir()
	answered(t, dir)
	answered(t, dir)
	keeping(t, dir, func(d storage.Documents) {
		docs, err := documentsOf(t.Context(), d, "system", storage.IndexIntents)
		must(t, err)
		list := inOrder(docs)
		must(t, d.Delete(t.Context(), "system", storage.IndexIntents, list[0].ID))
		list[1].Position += 1000
		list[1].Body = bytes.ReplaceAll(list[1].Body, []byte("admin.put"), []byte("admin.out"))
		must(t, d.Put(t.Context(), "system", storage.IndexIntents, list[1]))
	})
	if h, err := Fsck(t.Context(), dir, nil); err != nil || h.OK {
		t.Fatalf("nothing was changed: %+v %v", h, err)
	}
	for _, index := range projections {
		if _, _, err := Reindex(t.Context(), dir, datadir.DocumentsAt{}, index); err != nil {
			t.Fatal(err)
		}
	}
	if h, err := Fsck(t.Context(), dir, nil); err != nil || !h.OK || !h.Compared {
		t.Errorf("%+v %v %v", h, h.FirstBad, err)
	}
}
