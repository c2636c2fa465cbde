package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/storage"
)

// Holdings is the index of the blobs that intents need, in a file of its own. It
// can be rebuilt from the journal, so its commits are not synced one by one: a
// power cut leaves an earlier whole state. Safe for concurrent use.
type Holdings struct{ db *sql.DB }

const holdingsSchema = `
	CREATE TABLE IF NOT EXISTS holdings(
		tenant TEXT NOT NULL, digest TEXT NOT NULL, position INTEGER NOT NULL,
		PRIMARY KEY(tenant, digest, position)) STRICT, WITHOUT ROWID;
	CREATE INDEX IF NOT EXISTS held_by ON holdings(position);
	CREATE TABLE IF NOT EXISTS wanted(position INTEGER PRIMARY KEY, digests TEXT NOT NULL) STRICT;
	CREATE TABLE IF NOT EXISTS reached(one INTEGER PRIMARY KEY CHECK (one = 1), next INTEGER NOT NULL, last TEXT NOT NULL) STRICT`

// OpenHoldings opens or creates the file. It replaces a file that SQLite cannot read.
func OpenHoldings(ctx context.Context, path string) (*Holdings, error) {
	h, err := openHoldings(ctx, path)
	if err == nil || ctx.Err() != nil {
		return h, err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open holdings: %w", err)
		}
	}
	if h, err = openHoldings(ctx, path); err != nil {
		return nil, fmt.Errorf("open holdings: %w", err)
	}
	return h, nil
}

func openHoldings(ctx context.Context, path string) (*Holdings, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path, "busy_timeout(5000)", "journal_mode(wal)", "synchronous(normal)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	var found string
	if _, err = db.ExecContext(ctx, holdingsSchema); err == nil {
		err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	}
	if err == nil && found != "ok" {
		err = errors.New(found)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Holdings{db}, nil
}

// Close closes the file.
func (h *Holdings) Close() error { return h.db.Close() }

// Next implements router.HoldingStore.
func (h *Holdings) Next(ctx context.Context) (next int64, last string, err error) {
	err = h.db.QueryRowContext(ctx, "SELECT next, last FROM reached").Scan(&next, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", nil
	}
	return next, last, err
}

// Put implements router.HoldingStore.
func (h *Holdings) Put(ctx context.Context, next int64, last string, held []storage.Holding, freed []int64) error {
	tx, err := h.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, x := range held {
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO holdings VALUES (?, ?, ?)", x.Tenant, x.Digest, x.Position); err != nil {
			return err
		}
	}
	for _, position := range freed {
		if _, err := tx.ExecContext(ctx, "DELETE FROM holdings WHERE position = ?", position); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO reached VALUES (1, ?, ?)", next, last); err != nil {
		return err
	}
	return tx.Commit()
}

// Clear implements router.HoldingStore.
func (h *Holdings) Clear(ctx context.Context) error {
	_, err := h.db.ExecContext(ctx, "BEGIN IMMEDIATE; DELETE FROM holdings; DELETE FROM wanted; DELETE FROM reached; COMMIT")
	return err
}

// Holders implements router.HoldingStore.
func (h *Holdings) Holders(ctx context.Context, tenant, digest string) ([]int64, error) {
	return collect(ctx, h.db, func(rows *sql.Rows) (p int64, err error) { return p, rows.Scan(&p) },
		"SELECT position FROM holdings WHERE tenant = ? AND digest = ? ORDER BY position", tenant, digest)
}

// Want implements router.HoldingStore: it is synced before it returns.
func (h *Holdings) Want(ctx context.Context, position int64, digests []string) error {
	if _, err := h.db.ExecContext(ctx, "INSERT OR REPLACE INTO wanted VALUES (?, ?)", position, strings.Join(digests, " ")); err != nil {
		return err
	}
	_, err := h.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// WantedBlobs implements router.HoldingStore.
func (h *Holdings) WantedBlobs(ctx context.Context, position int64) (digests []string, known bool, err error) {
	var text string
	err = h.db.QueryRowContext(ctx, "SELECT digests FROM wanted WHERE position = ?", position).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return strings.Fields(text), err == nil, err
}
