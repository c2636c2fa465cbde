package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/judge"
)

// DamageError says that what is kept beside a record is not what its parts say.
type DamageError struct {
	Position int64
	Reason   string
}

func (d *DamageError) Error() string { return d.Reason }

// Words of damages.
const (
	wrongKey   = "the key log holds another idempotency key than its record: writ up puts it right from the record"
	missingKey = "the key log lacks the idempotency key of its record: writ up puts it right from the record"
	wrongPlace = "what is kept beside its parts differs from them in which order it is about, or whether it is open"
)

// proved is a stored entry with what its parts say in the place of what stands
// beside them.
type proved struct {
	storage.Entry
	known bool // the parts say it; else what is stored has to do
	keyed bool // Key is the parts' own
	wrong bool // beside the parts stood something else
}

func prove(e storage.Entry) proved {
	p := proved{Entry: e}
	f, ok := storage.Follow(e.Record)
	if !ok {
		return p
	}
	p.known, p.keyed = true, f.Keyed
	take := f.Take && (e.Take || !f.Refused) // a refusal that takes none is recorded again, at worst
	p.wrong = e.Of != f.Of || e.Open != f.Open || e.Take != take
	p.Of, p.Open, p.Take, p.Key, p.Refused = f.Of, f.Open, take, f.Key, f.Refused && take
	return p
}

// keyOf the next entry that takes one: the record's own, or what the key log has
// where the record does not tell. what is wrong with the key log, if anything.
func (l *keylog) keyOf(p *proved) (wrong string, err error) {
	stored, there, err := l.at(p.Record.Position)
	switch {
	case err != nil:
		return "", err
	case !there && !p.keyed:
		return "", fmt.Errorf("the keylog does not have the key of position %d", p.Record.Position)
	case !p.keyed:
		p.Key = stored
		return "", nil
	case !there:
		return missingKey, nil
	case stored != p.Key:
		return wrongKey, nil
	default:
		return "", nil
	}
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
	at, there := slices.BinarySearchFunc(row.keys, t.Position, func(k judge.Taken, p int64) int { return int(k.Position - p) })
	if there {
		row.keys[at] = t
	} else {
		row.keys = slices.Insert(row.keys, at, t)
	}
	mended := []byte{}
	for _, k := range row.keys {
		mended = appendTaken(mended, first, k)
	}
	_, err = c.ExecContext(ctx, "UPDATE keylog SET keys = ? WHERE first = ?", mended, first)
	return err
}

// CheckKeys compares what is kept beside the records, keys above all, with what
// their parts say. The error is a *DamageError if they differ; unproven are the
// keys that no part proves any more.
func (r *Records) CheckKeys(ctx context.Context) (unproven int64, err error) {
	for p, err := range r.proved(ctx, 0) {
		if err != nil {
			return unproven, err
		}
		if p.Take && !p.keyed {
			unproven++
		}
	}
	return unproven, nil
}

// Entries yields the records from a position with what their parts say they are about,
// and the subjects that they touched. The error is a *DamageError where something else stands beside them.
func (r *Records) Entries(ctx context.Context, from int64) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		for p, err := range r.proved(ctx, from) {
			if !yield(p.Entry, err) {
				return
			}
		}
	}
}

func (r *Records) proved(ctx context.Context, from int64) iter.Seq2[proved, error] {
	return func(yield func(proved, error) bool) {
		log := keylog{more: r.keyRows(ctx, from), from: from}
		for ; from < r.next; from += scanBatch {
			batch, err := r.read(ctx, from, min(from+scanBatch, r.next))
			if err != nil {
				yield(proved{}, err)
				return
			}
			for _, e := range batch {
				p := prove(e)
				err := log.check(&p)
				if ctx.Err() != nil {
					err = ctx.Err()
				}
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}
}

// check holds what stands beside an entry's parts to them.
func (l *keylog) check(p *proved) error {
	wrong := ""
	if p.wrong {
		wrong = wrongPlace
	}
	if p.Take {
		found, err := l.keyOf(p)
		if err != nil {
			found = err.Error()
		}
		wrong = cmp.Or(wrong, found)
	}
	if wrong != "" {
		return &DamageError{p.Record.Position, wrong}
	}
	return nil
}

// keyRows reads the key log a few rows at a time, from the one that has a position on: a
// check of all of it does not keep the write-ahead log from being started over.
func (r *Records) keyRows(ctx context.Context, from int64) func() (keyRow, bool, error) {
	var rows []keyRow
	last := int64(-1)
	began := false
	return func() (row keyRow, more bool, err error) {
		if !began {
			began = true
			if err = r.db.QueryRowContext(ctx, "SELECT coalesce(max(first), 0) - 1 FROM keylog WHERE first <= ?", from).Scan(&last); err != nil {
				return row, false, fmt.Errorf("read keylog: %w", err)
			}
		}
		if len(rows) == 0 {
			if rows, err = r.keyRowsBehind(ctx, last); err != nil || len(rows) == 0 {
				return row, false, err
			}
		}
		row, rows = rows[0], rows[1:]
		last = row.first
		return row, true, nil
	}
}

func (r *Records) keyRowsBehind(ctx context.Context, last int64) (list []keyRow, err error) {
	rows, err := r.db.QueryContext(ctx, "SELECT first, keys, commits FROM keylog WHERE first > ? AND first < ? ORDER BY first LIMIT ?", last, r.next, scanBatch)
	if err != nil {
		return nil, fmt.Errorf("read keylog: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	next := rowsOf(rows)
	for {
		row, more, err := next()
		if err != nil || !more {
			return list, err
		}
		list = append(list, row)
	}
}
