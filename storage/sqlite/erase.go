package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
)

var _ storage.Eraser = (*Journal)(nil)

// Erase erases parts of records; see storage.Eraser. It overwrites their keys, beside the
// writer: no record changes.
func (j *Journal) Erase(ctx context.Context, positions ...int64) error {
	if err := j.Failure(); err != nil {
		return err
	}
	next := j.Next()
	var slots []uint64
	for _, at := range positions {
		if at < 0 || at >= next {
			return fmt.Errorf("erase record %d: %w", at, storage.ErrNotFound)
		}
		slot, found, err := readSlot(ctx, j.db.readers, "position = ?", at)
		if err != nil {
			return fmt.Errorf("erase record %d: %w", at, j.closedOr(err))
		}
		if found {
			slots = append(slots, slot)
		}
	}
	return j.keys.erase(slots)
}

// readSlot reads where the key of a record is.
func readSlot(ctx context.Context, db *sql.DB, which string, args ...any) (slot uint64, found bool, err error) {
	var position int64
	var kind int
	var body []byte
	row := db.QueryRowContext(ctx, "SELECT position, kind, body FROM records WHERE "+which, args...) //nolint:gosec // G202: a constant
	if err := row.Scan(&position, &kind, &body); err != nil {
		return 0, false, err
	}
	return codec.Slot(position, kind, body)
}

// lastKeyFile is the newest file that records have keys of; 0: none has.
func lastKeyFile(ctx context.Context, db *sql.DB, end int64) (file uint64, err error) {
	for at := end - 1; at >= 0; at-- { // most records have one, so that few are read
		slot, found, err := readSlot(ctx, db, "position = ?", at)
		if errors.Is(err, sql.ErrNoRows) {
			continue // replay reports the gap
		}
		if err != nil || found {
			return slot / keysPerFile, err
		}
	}
	return 0, nil
}
