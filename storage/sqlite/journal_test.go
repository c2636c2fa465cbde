package sqlite_test

import (
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/storage/storagetest"
)

func TestJournal(t *testing.T) {
	storagetest.TestJournal(t, func(t testing.TB, dir string, observe storage.Observer) storagetest.Opened {
		t.Helper()
		return open(t, dir, sqlite.JournalOptions{Observer: observe})
	})
}

func open(t testing.TB, dir string, o sqlite.JournalOptions) *sqlite.Journal {
	t.Helper()
	if o.OnFatal == nil {
		o.OnFatal = func(err error) { t.Errorf("fatal: %v", err) }
	}
	j, err := sqlite.OpenJournal(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}
