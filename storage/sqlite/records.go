package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
)

// scanBatch is how many records Scan reads at a time. A scan never keeps a read
// transaction open while its consumer works: that would prevent the restart
// of the write-ahead log.
const scanBatch = 256

// scanBytes is from how many bytes on of records a transaction reads no more of them.
const scanBytes = 16 << 20

// Get reads one record; see storage.Records.
func (j *Journal) Get(ctx context.Context, position int64) (storage.Record, error) {
	if err := j.Failure(); err != nil {
		return storage.Record{}, err
	}
	return reads(j.read).get(ctx, position)
}

// Scan yields records in order; see storage.Records. After an error it ends.
func (j *Journal) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) { reads(j.read).scan(ctx, from, j.Next(), yield) }
}

// read returns the entries of a range.
func (j *Journal) read(ctx context.Context, from, to int64) ([]storage.Entry, error) {
	if batch := j.tail.read(from, to); batch != nil {
		return batch, errors.Join(ctx.Err(), j.closedOr(j.Failure()))
	}
	batch, err := readEntries(ctx, j.db.readers, j.keys, from, to, nil)
	if err != nil {
		return nil, j.closedOr(err)
	}
	return batch, j.Failure()
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
	for from = max(from, 0); from < end; {
		to := min(from+scanBatch, end)
		batch, err := read(ctx, from, to)
		from = after(batch, to)
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

// readEntries reads those of a range, the first of them where all have more than scanBytes; see
// after. It calls lost, if that is not nil, for each one whose erasable parts cannot be decrypted
// although their key was not destroyed.
func readEntries(ctx context.Context, db *sql.DB, keys *keyFiles, from, to int64, lost func(*codec.LostError)) (batch []storage.Entry, err error) {
	rows, err := db.QueryContext(ctx, "SELECT position, kind, body FROM records WHERE position >= ? AND position < ? ORDER BY position", from, to)
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for read := 0; read < scanBytes && rows.Next(); {
		e, size, err := scanEntry(rows, keys)
		if l := (*codec.LostError)(nil); errors.As(err, &l) {
			if err = nil; lost != nil {
				lost(l)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		batch, read = append(batch, e), read+size
	}
	return batch, rows.Err()
}

// after is where to continue when readEntries was called for a range up to a position.
func after(batch []storage.Entry, to int64) int64 {
	if len(batch) == 0 {
		return to
	}
	return batch[len(batch)-1].Record.Position + 1
}

// scanEntry reads one row of (position, kind, body), and returns the length of the body. With a
// *codec.LostError the entry is usable.
func scanEntry(rows *sql.Rows, keys *keyFiles) (e storage.Entry, size int, err error) {
	var position int64
	var kind int
	var body []byte
	if err := rows.Scan(&position, &kind, &body); err != nil {
		return storage.Entry{}, 0, err
	}
	e, err = codec.Decode(position, kind, body, keys.key)
	return e, len(body), err
}

// Records reads the journal of a directory beside the process that writes it,
// or when none does. It takes no lock of the directory and changes no record.
type Records struct {
	db   *sql.DB
	keys *keyFiles
	next int64
}

var _ storage.Records = (*Records)(nil)

// OpenRecords opens the journal of a directory for reading, as far as it is
// durable now. The error wraps fs.ErrNotExist where there is none.
func OpenRecords(ctx context.Context, dir string) (*Records, error) {
	return openRecords(ctx, dir, "")
}

// OpenClosed is OpenRecords for a journal whose process has ended, and none may begin
// meanwhile: if that process closed it, reading leaves no file beside it.
func OpenClosed(ctx context.Context, dir string) (*Records, error) {
	if _, err := os.Stat(filepath.Join(dir, "journal.db-wal")); !errors.Is(err, fs.ErrNotExist) {
		return OpenRecords(ctx, dir)
	}
	return openRecords(ctx, dir, "&immutable=1")
}

func openRecords(ctx context.Context, dir, how string) (*Records, error) {
	path := filepath.Join(dir, "journal.db")
	_, err := os.Stat(path)
	r := &Records{keys: keysOf(dir)}
	if err == nil {
		r.db, err = readOnly(path, how)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := r.Reach(ctx); err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, r.db.Close()))
	}
	return r, nil
}

// Reach has the reader include all records that are durable now. Nothing else may read meanwhile.
func (r *Records) Reach(ctx context.Context) error {
	return r.db.QueryRowContext(ctx, "SELECT coalesce(max(position)+1, 0) FROM records").Scan(&r.next)
}

// Close ends reading.
func (r *Records) Close() error { return errors.Join(r.db.Close(), r.keys.Close()) }

// Next is the position after the last record that was durable at opening, or at the last Reach.
func (r *Records) Next() int64 { return r.next }

// Get reads one record; see storage.Records.
func (r *Records) Get(ctx context.Context, position int64) (storage.Record, error) {
	return reads(r.read).get(ctx, position)
}

// Scan yields records in order; see storage.Records.
func (r *Records) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) { reads(r.read).scan(ctx, from, r.next, yield) }
}

// MissingKeys are the key files that records have keys of, and that are missing or cut off.
func (r *Records) MissingKeys(ctx context.Context) (files []string, err error) {
	last, err := lastKeyFile(ctx, r.db, r.next)
	if err != nil {
		return nil, err
	}
	numbers, err := r.keys.missing(last)
	for _, n := range numbers {
		files = append(files, r.keys.path(n))
	}
	return files, err
}

func (r *Records) read(ctx context.Context, from, to int64) ([]storage.Entry, error) {
	return readEntries(ctx, r.db, r.keys, from, to, nil)
}
