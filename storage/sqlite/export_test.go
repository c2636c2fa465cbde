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

// RestartLog makes the writer restart the write-ahead log after its next
// group, as it does by itself when the log is long.
func (j *Journal) RestartLog() { j.ckpt.restart.Store(true) }

// Index is what the journal knows in memory.
func (j *Journal) Index() *Index { return &Index{j.State} }

// RestartLog is the journal's, of documents.
func (d *Documents) RestartLog() { d.ckpt.restart.Store(true) }

// Step copies some rows, and reports whether any were left.
func (c *Copy) Step(ctx context.Context) (more bool, err error) {
	n, err := c.step(c, ctx)
	return n > 0, err
}

// ReadOnce is what one transaction reads of the records from a position.
func (j *Journal) ReadOnce(ctx context.Context, from int64) (int, error) {
	batch, err := readEntries(ctx, j.db.readers, j.keys, from, from+scanBatch, nil)
	return len(batch), err
}
