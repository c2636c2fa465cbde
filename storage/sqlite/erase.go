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
	return j.erase(ctx, positions, func(s codec.Slots) uint64 { return s.Erasable })
}

// EraseTransient erases the part transient of records; see storage.Eraser.
func (j *Journal) EraseTransient(ctx context.Context, positions ...int64) error {
	return j.erase(ctx, positions, func(s codec.Slots) uint64 { return s.Transient })
}

func (j *Journal) erase(ctx context.Context, positions []int64, which func(codec.Slots) uint64) error {
	if err := j.Failure(); err != nil {
		return err
	}
	next := j.Next()
	var slots []uint64
	for _, at := range positions {
		if at < 0 || at >= next {
			return fmt.Errorf("erase record %d: %w", at, storage.ErrNotFound)
		}
		of, err := readSlots(ctx, j.db.readers, at)
		if err != nil {
			return fmt.Errorf("erase record %d: %w", at, j.closedOr(err))
		}
		if slot := which(of); slot != 0 {
			slots = append(slots, slot)
		}
	}
	defer j.tail.forget()
	return j.keys.erase(slots)
}

// readSlots reads where the keys of a record are.
func readSlots(ctx context.Context, db *sql.DB, position int64) (codec.Slots, error) {
	var kind int
	var body []byte
	row := db.QueryRowContext(ctx, "SELECT kind, body FROM records WHERE position = ?", position)
	if err := row.Scan(&kind, &body); err != nil {
		return codec.Slots{}, err
	}
	return codec.SlotsOf(position, kind, body)
}

// lastKeyFile is the newest file that records have keys of; 0: none has.
func lastKeyFile(ctx context.Context, db *sql.DB, end int64) (file uint64, err error) {
	rows, err := db.QueryContext(ctx, "SELECT position, kind, body FROM records WHERE position < ? ORDER BY position DESC", end)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() { // most records have one, so that few are read
		var position int64
		var kind int
		var body []byte
		if err := rows.Scan(&position, &kind, &body); err != nil {
			return 0, err
		}
		slots, err := codec.SlotsOf(position, kind, body)
		if last := max(slots.Erasable, slots.Transient); err != nil || last > 0 {
			return last / keysPerFile, err
		}
	}
	return 0, rows.Err()
}
