package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/storage/internal/judge"
)

// replay folds every stored record that the state has not seen into it, and shows it to
// the observer. What is stored beside the parts of a record is compared with them, and a
// key log that differs is repaired.
func (j *Journal) replay(ctx context.Context) error {
	from := j.State.Next() // after what a snapshot knows
	if err := j.remember(ctx); err != nil {
		return err
	}
	var end int64
	if err := j.db.readers.QueryRowContext(ctx, "SELECT coalesce(max(position)+1, 0) FROM records").Scan(&end); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	if end < from {
		return fmt.Errorf("the journal ends before position %d, the index that it was opened with at %d", end, from)
	}
	var wrong []judge.Taken
	for p, err := range provedFrom(ctx, j.db.readers, from, end) {
		if err != nil {
			return err
		}
		position := p.Record.Position
		if p.Wrong {
			j.options.OnDamage(&DamageError{position, wrongPlace})
		}
		if p.wrongKey != "" {
			j.options.OnDamage(&DamageError{position, p.wrongKey})
			wrong = append(wrong, judge.Taken{Key: p.Key, Position: position})
		}
		j.State.Apply(p.Entry)
		j.options.Observer(p.Entry)
	}
	var beyond int64
	err := j.db.readers.QueryRowContext(ctx, "SELECT count(*) FROM keylog WHERE first >= ? AND keys <> x''", end).Scan(&beyond)
	if err != nil {
		return fmt.Errorf("read keylog: %w", err)
	}
	if beyond > 0 {
		return fmt.Errorf("the keylog has keys of position %d or later, which no record took", end)
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
	var last []judge.Committed // newest first
	for len(last) < judge.RememberCommits && rows.Next() {
		row, err := scanKeyRow(rows)
		if err != nil {
			return err
		}
		slices.Reverse(row.Commits)
		last = append(last, row.Commits...)
	}
	for _, c := range slices.Backward(last) {
		j.State.Remember(c)
	}
	return rows.Err()
}
