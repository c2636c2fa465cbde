package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/judge"
)

var _ storage.Eraser = (*Journal)(nil)

// eraseRetry is how long Erase waits before it looks again whether readers still
// need the write-ahead log: twice as long each time, up to eraseRetryMost. Each
// look holds the writer up for 20 ms at most, so that short reads are outwaited.
const (
	eraseRetry     = 10 * time.Millisecond
	eraseRetryMost = 500 * time.Millisecond
)

// Erase erases parts of records; see storage.Eraser. The rows are overwritten
// in place in one transaction, which is then copied into the database and
// the write-ahead log truncated. A long read of the journal delays that:
// then Erase waits, until ctx ends, while intents continue.
//
// Crash before the transaction: nothing is erased. After it: readers see the
// digests, and the write-ahead log may still have the bytes, until Erase is
// called again.
func (j *Journal) Erase(ctx context.Context, what ...storage.Erasure) error {
	if len(what) == 0 {
		return nil
	}
	if err := j.DoAlone(ctx, func(ctx context.Context) error { return j.overwrite(ctx, what) }); err != nil {
		return err
	}
	for wait := eraseRetry; ; wait = min(2*wait, eraseRetryMost) {
		if err := j.DoAlone(ctx, j.emptyLog); !errors.Is(err, errBusy) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("erase: somebody reads the journal, its write-ahead log still has the bytes: %w", ctx.Err())
		}
	}
}

// errBusy reports that a reader still needs the write-ahead log.
var errBusy = errors.New("the journal is being read")

// overwrite is run by the writer.
func (j *Journal) overwrite(ctx context.Context, what []storage.Erasure) error {
	bodies := make(map[int64][]byte)
	for _, x := range what {
		if x.Position < 0 || x.Position >= j.State.Next() {
			return fmt.Errorf("erase record %d: %w", x.Position, storage.ErrNotFound)
		}
		body, err := j.without(ctx, x, bodies[x.Position])
		if err != nil {
			return fmt.Errorf("erase record %d: %w", x.Position, err)
		}
		if body != nil {
			bodies[x.Position] = body
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	if err := j.db.transact(ctx, func() error { return j.replace(ctx, bodies) }); err != nil {
		return j.writeFailed(err)
	}
	failpoint.Hit(failpoint.JournalErased)
	j.ckpt.dirty.Store(true)
	return nil
}

// without is the body of a record after an erasure, as long as it was; nil if
// nothing is to be erased. body is the record's, or nil for the stored one.
func (j *Journal) without(ctx context.Context, x storage.Erasure, body []byte) ([]byte, error) {
	kind := 0
	row := j.db.writer.QueryRowContext(ctx, "SELECT kind, body FROM records WHERE position = ?", x.Position)
	stored := body
	if err := row.Scan(&kind, &body); err != nil {
		return nil, err
	}
	if stored == nil {
		stored = body
	}
	e, err := codec.Decode(x.Position, kind, stored)
	if err != nil {
		return nil, err
	}
	for _, name := range x.Parts {
		if _, there := e.Record.Parts[name]; there && len(e.Record.Salts[name]) != codec.DigestSize {
			return nil, fmt.Errorf("part %q has no salt: its digest would tell what it was", name)
		}
	}
	rec, changed := e.Record.Without(x.Parts...)
	if !changed {
		return nil, nil
	}
	e.Record = rec
	if _, _, err := judge.Prove(e); err != nil {
		return nil, err
	}
	erased := codec.Append(make([]byte, 0, len(stored)), e)
	if len(erased) > len(stored) {
		return nil, errors.New("part is shorter than its digest")
	}
	return slices.Grow(erased, len(stored)-len(erased))[:len(stored)], nil
}

// replace overwrites rows with bodies of the same length.
func (j *Journal) replace(ctx context.Context, bodies map[int64][]byte) error {
	for position, body := range bodies {
		if _, err := j.db.writer.ExecContext(ctx, "UPDATE records SET body = ? WHERE position = ?", body, position); err != nil {
			return fmt.Errorf("erase record %d: %w", position, err)
		}
		if _, err := j.db.writer.ExecContext(ctx, "INSERT INTO erased(position) VALUES (?)", position); err != nil {
			return fmt.Errorf("erase record %d: %w", position, err)
		}
	}
	failpoint.Hit(failpoint.JournalErasing)
	if err := scrubRoot(ctx, j.db.writer); err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	return nil
}

// What scrubRoot reads of a page (SQLite's file format, section 1.6).
const (
	interiorTable  = 5  // type of the page, its first byte
	interiorHeader = 12 // bytes, then two for each cell
)

// scrubRoot wipes the bytes between the header and the cells of the root page of
// the records. It was the only page once: when it was full SQLite copied its rows
// to another page and left their bytes. No other page of an append-only
// table is ever copied.
func scrubRoot(ctx context.Context, c *sql.Conn) error {
	var number int64
	var page []byte
	err := c.QueryRowContext(ctx, `SELECT pgno, data FROM sqlite_dbpage
		WHERE pgno = (SELECT rootpage FROM sqlite_schema WHERE name = 'records')`).Scan(&number, &page)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // it holds no records
	}
	if err != nil {
		return err
	}
	if len(page) < interiorHeader || page[0] != interiorTable {
		return nil // the one page still
	}
	cells, begin := int(binary.BigEndian.Uint16(page[3:])), int(binary.BigEndian.Uint16(page[5:]))
	from := interiorHeader + 2*cells
	if from > begin || begin > len(page) {
		return errors.New("the root page of the records is damaged")
	}
	if len(bytes.Trim(page[from:begin], "\x00")) == 0 {
		return nil
	}
	clear(page[from:begin])
	_, err = c.ExecContext(ctx, "UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?", page, number)
	return err
}

// emptyLog is run by the writer: it copies the write-ahead log into the database
// and cuts it to nothing. Readers that stay in the way are errBusy.
func (j *Journal) emptyLog(ctx context.Context) (err error) {
	if _, err := j.db.writer.ExecContext(ctx, "PRAGMA busy_timeout=20"); err != nil {
		return j.writeFailed(err)
	}
	busy, _, _, err := checkpointed(ctx, j.db.writer, "TRUNCATE")
	if _, again := j.db.writer.ExecContext(ctx, "PRAGMA busy_timeout=1000"); again != nil {
		return j.writeFailed(again)
	}
	switch {
	case busy || err != nil && isBusy(err):
		return errBusy
	case err != nil:
		return j.writeFailed(err)
	}
	failpoint.Hit(failpoint.JournalEmptied)
	return nil
}
