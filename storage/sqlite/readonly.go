package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"aob.dev/writ/storage"
)

// Records reads the journal of a directory beside the process that writes it,
// or when none does. It takes no lock of the directory and changes no record.
type Records struct {
	db   *sql.DB
	next int64
}

var _ storage.Records = (*Records)(nil)

// OpenRecords opens the journal of a directory for reading, as far as it is
// durable now. The error wraps fs.ErrNotExist where there is none.
func OpenRecords(ctx context.Context, dir string) (*Records, error) {
	path := filepath.Join(dir, "journal.db")
	_, err := os.Stat(path)
	r := &Records{}
	if err == nil {
		r.db, err = readOnly(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := r.db.QueryRowContext(ctx, "SELECT coalesce(max(position)+1, 0) FROM records").Scan(&r.next); err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, r.db.Close()))
	}
	return r, nil
}

// Close ends reading.
func (r *Records) Close() error { return r.db.Close() }

// Next is the position behind the last record that was durable at opening.
func (r *Records) Next() int64 { return r.next }

// Get reads one record; see storage.Records.
func (r *Records) Get(ctx context.Context, position int64) (storage.Record, error) {
	return reads(r.read).get(ctx, position)
}

// Scan yields records in order; see storage.Records.
func (r *Records) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) { reads(r.read).scan(ctx, from, r.next, yield) }
}

func (r *Records) read(ctx context.Context, from, to int64) ([]storage.Entry, error) {
	return readEntries(ctx, r.db, from, to)
}
