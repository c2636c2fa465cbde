package sqlite

import (
	"context"
	"fmt"
	"testing"
)

// LimitPages lets the file grow by so many pages at most, as a full disk would.
// The journal must be idle.
func (j *Journal) LimitPages(t *testing.T, more int) {
	t.Helper()
	var pages int
	if err := j.db.writer.QueryRowContext(context.Background(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := j.db.writer.ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count=%d", pages+more)); err != nil {
		t.Fatal(err)
	}
}

// StartLogOver has the writer start the write-ahead log over after its next
// group, as it does by itself when the log is long.
func (j *Journal) StartLogOver() { j.ckpt.restart.Store(true) }

// Index is what the journal knows in memory.
func (j *Journal) Index() *Index { return &Index{j.State} }
