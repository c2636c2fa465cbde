package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"aob.dev/writ/storage"
)

// scanBatch is how many records Scan reads at a time. A scan never keeps a read
// transaction open while its consumer works: that would keep the write-ahead log
// from being started over.
const scanBatch = 256

// Get reads one record; see storage.Records.
func (j *Journal) Get(ctx context.Context, position int64) (storage.Record, error) {
	if err := j.failure(); err != nil {
		return storage.Record{}, err
	}
	return reads(j.read).get(ctx, position)
}

// OpenOrders lists the open orders; see storage.Journal.
func (j *Journal) OpenOrders(ctx context.Context) ([]storage.OpenOrder, error) {
	if err := errors.Join(ctx.Err(), j.failure()); err != nil {
		return nil, err
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.state.OpenOrders(), nil
}

// Next is the position that the next record will have; see storage.Records.
func (j *Journal) Next() int64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.state.Next()
}

// Scan yields records in order; see storage.Records. After an error it ends.
func (j *Journal) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) { reads(j.read).scan(ctx, from, j.Next(), yield) }
}

// read returns the entries of a range.
func (j *Journal) read(ctx context.Context, from, to int64) ([]storage.Entry, error) {
	batch, err := readEntries(ctx, j.db.readers, from, to)
	if err != nil {
		return nil, j.closedOr(err)
	}
	return batch, j.failure()
}

// reads returns the entries of a range.
type reads func(ctx context.Context, from, to int64) ([]storage.Entry, error)

func (read reads) get(ctx context.Context, position int64) (storage.Record, error) {
	batch, err := read(ctx, position, position+1)
	if err == nil && len(batch) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return storage.Record{}, err
	}
	return batch[0].Record, nil
}

// scan yields the records up to an end, scanBatch read at a time.
func (read reads) scan(ctx context.Context, from, end int64, yield func(storage.Record, error) bool) {
	for from = max(from, 0); from < end; from = min(from+scanBatch, end) {
		batch, err := read(ctx, from, min(from+scanBatch, end))
		if err != nil {
			yield(storage.Record{}, err)
			return
		}
		for _, e := range batch {
			if !yield(e.Record, nil) {
				return
			}
		}
	}
}

func readEntries(ctx context.Context, db *sql.DB, from, to int64) (batch []storage.Entry, err error) {
	rows, err := db.QueryContext(ctx, "SELECT position, kind, body FROM records WHERE position >= ? AND position < ? ORDER BY position", from, to)
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		batch = append(batch, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	return batch, nil
}

// scanEntry reads one row of (position, kind, body).
func scanEntry(rows *sql.Rows) (storage.Entry, error) {
	var position int64
	var kind int
	var body []byte
	if err := rows.Scan(&position, &kind, &body); err != nil {
		return storage.Entry{}, fmt.Errorf("read record: %w", err)
	}
	return decodeBody(position, kind, body)
}
