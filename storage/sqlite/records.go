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
	if err := j.failed.get(); err != nil {
		return storage.Record{}, err
	}
	batch, err := j.read(ctx, position, position+1)
	if err != nil {
		return storage.Record{}, err
	}
	if len(batch) == 0 {
		return storage.Record{}, storage.ErrNotFound
	}
	return batch[0], nil
}

// OpenOrders lists the open orders; see storage.Records.
func (j *Journal) OpenOrders(ctx context.Context) ([]storage.OpenOrder, error) {
	if err := errors.Join(ctx.Err(), j.failed.get()); err != nil {
		return nil, err
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.state.openOrders(), nil
}

// Next is the position that the next record will have; see storage.Records.
func (j *Journal) Next() int64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.state.next
}

// Scan yields records in order; see storage.Records. After an error it ends.
func (j *Journal) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		end := j.Next()
		for from = max(from, 0); from < end; from = min(from+scanBatch, end) {
			batch, err := j.read(ctx, from, min(from+scanBatch, end))
			if err == nil {
				err = j.failed.get()
			}
			if err != nil {
				yield(storage.Record{}, err)
				return
			}
			for _, r := range batch {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// read returns the records of a range.
func (j *Journal) read(ctx context.Context, from, to int64) (batch []storage.Record, err error) {
	rows, err := j.db.readers.QueryContext(ctx,
		"SELECT position, kind, body FROM records WHERE position >= ? AND position < ? ORDER BY position", from, to)
	if err != nil {
		return nil, closedOr(fmt.Errorf("read records: %w", err), j.requests.stop)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return collect(rows)
}

func collect(rows *sql.Rows) (batch []storage.Record, err error) {
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		batch = append(batch, e.Record)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	return batch, nil
}

// closedOr is ErrClosed if the database was closed under a reader.
func closedOr(err error, stop <-chan struct{}) error {
	select {
	case <-stop:
		return ErrClosed
	default:
		return err
	}
}
