package sqlite_test

import (
	"testing"

	"aob.dev/writ/storage/sqlite"
)

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
