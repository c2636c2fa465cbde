package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/judge"
)

// scanKeyRow reads one row of (first, keys, commits).
func scanKeyRow(rows *sql.Rows) (codec.KeyRow, error) {
	var first int64
	var keys, commits []byte
	if err := rows.Scan(&first, &keys, &commits); err != nil {
		return codec.KeyRow{}, err
	}
	return decodeKeyRow(first, keys, commits)
}

func decodeKeyRow(first int64, keys, commits []byte) (codec.KeyRow, error) {
	row, err := codec.DecodeKeyRow(first, keys, commits)
	if err != nil {
		err = &DamageError{first, err.Error()}
	}
	return row, err
}

// keylog walks the key log in step with the records of a range, a few rows at a time.
type keylog struct {
	db        *sql.DB
	from, end int64          // keys of other positions do not count
	rows      []codec.KeyRow // read, and not yet used
	read      bool           // the first rows were read
	last      int64          // the first position of the row that was used last
	keys      []judge.Taken  // what is left of it
}

// key completes an entry that takes a key: with the record's own, or with what the key
// log has where the record does not tell.
func (l *keylog) key(ctx context.Context, p *proved) error {
	if !p.Take {
		return nil
	}
	stored, there, err := l.at(ctx, p.Record.Position)
	switch {
	case err != nil:
		return err
	case !there && !p.Keyed:
		return &DamageError{p.Record.Position, fmt.Sprintf("the keylog does not have the key of position %d", p.Record.Position)}
	case !p.Keyed:
		p.Key = stored
	case !there:
		p.wrongKey = missingKey
	case stored != p.Key:
		p.wrongKey = wrongKey
	}
	return nil
}

// at is the key that the log has for a position, if it has one.
func (l *keylog) at(ctx context.Context, position int64) (key storage.Key, there bool, err error) {
	for more := true; more && len(l.keys) == 0 && l.last <= position; {
		if more, err = l.next(ctx); err != nil {
			return storage.Key{}, false, err
		}
	}
	switch {
	case len(l.keys) == 0 || l.keys[0].Position > position:
		return storage.Key{}, false, nil
	case l.keys[0].Position < position:
		return storage.Key{}, false, l.unknown()
	}
	key, l.keys = l.keys[0].Key, l.keys[1:]
	return key, true, nil
}

// finish reads the rest, which must not have keys that no record took.
func (l *keylog) finish(ctx context.Context) error {
	for more := true; more; {
		if len(l.keys) > 0 {
			return l.unknown()
		}
		var err error
		if more, err = l.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *keylog) unknown() error {
	position := l.keys[0].Position
	return &DamageError{position, fmt.Sprintf("the keylog has a key of position %d that no record took", position)}
}

// next uses the next row, and says whether there was one.
func (l *keylog) next(ctx context.Context) (bool, error) {
	if len(l.rows) == 0 {
		if err := l.fill(ctx); err != nil || len(l.rows) == 0 {
			return false, err
		}
	}
	l.keys, l.last, l.rows = l.rows[0].Keys, l.rows[0].First, l.rows[1:]
	l.keys = slices.DeleteFunc(l.keys, func(t judge.Taken) bool { return t.Position < l.from })
	return true, nil
}

// fill reads rows: first from the one on that has the first position, then those behind.
func (l *keylog) fill(ctx context.Context) error {
	query, at := "first > ?", l.last
	if !l.read {
		query, at = "first >= (SELECT coalesce(max(first), 0) FROM keylog WHERE first <= ?)", l.from
	}
	rows, err := collect(ctx, l.db, scanKeyRow, "SELECT first, keys, commits FROM keylog WHERE "+query+" AND first < ? ORDER BY first LIMIT ?", at, l.end, scanBatch)
	if err != nil {
		return fmt.Errorf("read keylog: %w", err)
	}
	l.rows, l.read = append(l.rows, rows...), true
	return nil
}

// mend puts keys of the key log right, before anything else is written. A crash
// leaves it as it was.
func mend(ctx context.Context, c *sql.Conn, keys []judge.Taken) error {
	for _, t := range keys {
		if err := mendOne(ctx, c, t); err != nil {
			return fmt.Errorf("mend the keylog: %w", err)
		}
	}
	return nil
}

func mendOne(ctx context.Context, c *sql.Conn, t judge.Taken) error {
	var first int64
	var raw, commits []byte
	err := c.QueryRowContext(ctx, "SELECT first, keys, commits FROM keylog WHERE first <= ? ORDER BY first DESC LIMIT 1", t.Position).Scan(&first, &raw, &commits)
	if err != nil {
		return err
	}
	row, err := decodeKeyRow(first, raw, commits)
	if err != nil {
		return err
	}
	at, there := slices.BinarySearchFunc(row.Keys, t.Position, func(k judge.Taken, p int64) int { return int(k.Position - p) })
	if there {
		row.Keys[at] = t
	} else {
		row.Keys = slices.Insert(row.Keys, at, t)
	}
	mended, _ := row.Encode()
	_, err = c.ExecContext(ctx, "UPDATE keylog SET keys = ? WHERE first = ?", mended, first)
	return err
}
