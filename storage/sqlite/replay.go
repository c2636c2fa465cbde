package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/judge"
)

// replay folds every stored record that the state has not seen into it, and shows it to
// the observer, with what its parts say of it; the key log is held to that, and put right. It goes on
// reading records and keylog side by side so that neither is held in memory.
// Another goroutine reads and decodes ahead; it has ended when replay returns.
func (j *Journal) replay(ctx context.Context) (err error) {
	from := j.state.Next() // behind what a snapshot knows
	if err := j.remember(ctx); err != nil {
		return err
	}
	keys, err := j.db.readers.QueryContext(ctx, `SELECT first, keys, commits FROM keylog
		WHERE first >= (SELECT coalesce(max(first), 0) FROM keylog WHERE first <= ?) ORDER BY first`, from)
	if err != nil {
		return fmt.Errorf("read keylog: %w", err)
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	records, err := j.db.readers.QueryContext(ctx, "SELECT position, kind, body FROM records WHERE position >= ? ORDER BY position", from)
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	ahead := readAhead(records)
	defer func() {
		ahead.stop()
		err = errors.Join(err, records.Close())
	}()

	log := keylog{more: rowsOf(keys), from: from}
	var wrong []judge.Taken
	for batch := range ahead.batches {
		for i := range batch {
			mended, err := j.fold(&batch[i], &log)
			if err != nil {
				return err
			}
			if mended {
				wrong = append(wrong, judge.Taken{Key: batch[i].Key, Position: batch[i].Record.Position})
			}
		}
	}
	if ahead.err != nil {
		return ahead.err
	}
	if err := log.finish(); err != nil {
		return err
	}
	var end int64
	if err := j.db.readers.QueryRowContext(ctx, "SELECT coalesce(max(position)+1, 0) FROM records").Scan(&end); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	if end != j.state.Next() {
		return fmt.Errorf("the journal ends before position %d, the index that it was opened with at %d", end, j.state.Next())
	}
	return mend(ctx, j.db.writer, wrong)
}

// remember the last commits, oldest first.
func (j *Journal) remember(ctx context.Context) (err error) {
	rows, err := j.db.readers.QueryContext(ctx, "SELECT first, x'', commits FROM keylog ORDER BY first DESC")
	if err != nil {
		return fmt.Errorf("read keylog: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	next := rowsOf(rows)
	var last []judge.Committed // newest first
	for len(last) < judge.RememberCommits {
		row, more, err := next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		slices.Reverse(row.commits)
		last = append(last, row.commits...)
	}
	for _, c := range slices.Backward(last) {
		j.state.Remember(c)
	}
	return nil
}

// fold takes the next stored entry, and says whether the key log has its key wrong.
func (j *Journal) fold(p *proved, log *keylog) (wrong bool, err error) {
	position := p.Record.Position
	if position != j.state.Next() {
		return false, fmt.Errorf("gap: position %d follows %d", position, j.state.Next()-1)
	}
	if p.wrong {
		j.options.OnDamage(&DamageError{position, wrongPlace})
	}
	if p.Take {
		what, err := log.keyOf(p)
		if err != nil {
			return false, err
		}
		if wrong = what != ""; wrong {
			j.options.OnDamage(&DamageError{position, what})
		}
	}
	j.state.Apply(p.Entry)
	j.options.Observer(p.Entry)
	return wrong, nil
}

// aheadRecords are read together, and at most two such batches ahead.
const aheadRecords = 64

// reading is a goroutine that reads entries ahead of who folds them.
type reading struct {
	batches chan []proved // closed at the end
	stopped chan struct{} // closed by stop
	err     error         // why the end is not that of the records; set before batches is closed
}

func readAhead(rows *sql.Rows) *reading {
	r := &reading{batches: make(chan []proved, 1), stopped: make(chan struct{})}
	go func() {
		defer close(r.batches)
		r.err = r.read(rows)
	}()
	return r
}

func (r *reading) read(rows *sql.Rows) error {
	for more := true; more; {
		batch := make([]proved, 0, aheadRecords)
		for len(batch) < aheadRecords {
			if more = rows.Next(); !more {
				break
			}
			e, err := scanEntry(rows)
			if err != nil {
				return err
			}
			batch = append(batch, prove(e))
		}
		select {
		case r.batches <- batch:
		case <-r.stopped:
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	return nil
}

// stop ends the reading, if it has not ended, and waits for it.
func (r *reading) stop() {
	close(r.stopped)
	for range r.batches { // until it is closed
	}
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

// keylog walks the keylog in step with the records.
type keylog struct {
	more  func() (keyRow, bool, error) // the next row
	from  int64                        // keys of earlier positions do not count
	keys  []judge.Taken
	ahead int64 // the first position of the row that was read last
}

// at is the key that the log has for a position, if it has one.
func (l *keylog) at(position int64) (key storage.Key, there bool, err error) {
	for len(l.keys) == 0 && l.ahead <= position {
		more, err := l.next()
		if err != nil {
			return storage.Key{}, false, err
		}
		if !more {
			return storage.Key{}, false, nil
		}
	}
	switch {
	case len(l.keys) == 0 || l.keys[0].Position > position:
		return storage.Key{}, false, nil
	case l.keys[0].Position < position:
		return storage.Key{}, false, fmt.Errorf("the keylog has a key of position %d that no record took", l.keys[0].Position)
	}
	key, l.keys = l.keys[0].Key, l.keys[1:]
	return key, true, nil
}

func (l *keylog) next() (bool, error) {
	row, more, err := l.more()
	if err != nil || !more {
		return false, err
	}
	l.keys, l.ahead = row.keys, row.first
	for len(l.keys) > 0 && l.keys[0].Position < l.from {
		l.keys = l.keys[1:]
	}
	return true, nil
}

// rowsOf gives one row after the other.
func rowsOf(rows *sql.Rows) func() (keyRow, bool, error) {
	return func() (keyRow, bool, error) {
		if !rows.Next() {
			return keyRow{}, false, rows.Err()
		}
		var first int64
		var keys, commits []byte
		if err := rows.Scan(&first, &keys, &commits); err != nil {
			return keyRow{}, false, fmt.Errorf("read keylog: %w", err)
		}
		row, err := decodeKeyRow(first, keys, commits)
		return row, err == nil, err
	}
}

// finish reads the rest, which must not have keys of records that are not there.
func (l *keylog) finish() error {
	for {
		if len(l.keys) > 0 {
			return fmt.Errorf("the keylog has a key of position %d that no record took", l.keys[0].Position)
		}
		more, err := l.next()
		if err != nil || !more {
			return err
		}
	}
}
