package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"aob.dev/writ/storage"
)

// pageCache of a connection, in KiB.
func pageCache(t *testing.T, c *sql.Conn) (kib int64) {
	t.Helper()
	if err := c.QueryRowContext(t.Context(), "PRAGMA cache_size").Scan(&kib); err != nil {
		t.Fatal(err)
	}
	return -kib
}

// total of all page caches that a database may have.
func total(t *testing.T, d *database, readers int) int64 {
	t.Helper()
	c, err := d.readers.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := pageCache(t, d.writer) + pageCache(t, d.ckpt) + int64(readers)*pageCache(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestPageCachesAreBounded: the page caches of all connections of a database together keep its bound.
func TestPageCachesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for _, bound := range []int64{0, 4 << 20, 32 << 20} {
		j, err := OpenJournal(t.Context(), filepath.Join(dir, "journal"), JournalOptions{Cache: bound})
		if err != nil {
			t.Fatal(err)
		}
		d, err := OpenDocuments(t.Context(), filepath.Join(dir, "documents.db"), storage.NewCheck(storage.DefaultDimension), bound)
		if err != nil {
			t.Fatal(err)
		}
		most := bound
		if bound == 0 {
			most = DefaultCache
		}
		for name, got := range map[string]int64{"journal": total(t, j.db, journalReaders), "documents": total(t, d.db, documentReaders)} {
			if got<<10 > most || got<<10 < most/2 {
				t.Errorf("%s: caches of %d KiB, bound %d KiB", name, got, most>>10)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
