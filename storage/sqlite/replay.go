package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/judge"
)

// replay applies every stored record that the state lacks, and shows it to
// the observer. What is stored beside the parts of a record is compared with them, and the
// parts are used.
func (j *Journal) replay(ctx context.Context) error {
	from := j.State.Next() // after what a snapshot knows
	var end int64
	if err := j.db.readers.QueryRowContext(ctx, "SELECT coalesce(max(position)+1, 0) FROM records").Scan(&end); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	if err := j.remember(ctx, end); err != nil {
		return err
	}
	if end < from {
		return fmt.Errorf("the journal ends before position %d, the index that it was opened with at %d", end, from)
	}
	if err := j.beginKeys(ctx, end); err != nil {
		return err
	}
	for p, err := range provedFrom(ctx, j.db.readers, j.keys, from, end) {
		if err != nil {
			return err
		}
		if p.wrong {
			j.options.OnDamage(&DamageError{p.Record.Position, wrongPlace})
		}
		if p.lost != nil {
			j.options.OnLost(p.lost)
		}
		j.State.Apply(p.Entry)
		j.options.Observer(p.Entry)
	}
	return nil
}

// beginKeys looks which key files are missing that records have keys of, and begins another one.
func (j *Journal) beginKeys(ctx context.Context, end int64) error {
	last, err := lastKeyFile(ctx, j.db.readers, end)
	if err != nil {
		return err
	}
	missing, err := j.keys.missing(last)
	for _, n := range missing {
		j.options.OnLost(fmt.Errorf("%w: %s is missing or cut off", codec.ErrLost, j.keys.path(n)))
	}
	j.keys.begin(last)
	return err
}

// remember the last commits, oldest first. end is that of the records.
func (j *Journal) remember(ctx context.Context, end int64) (err error) {
	rows, err := j.db.readers.QueryContext(ctx, "SELECT first, ids FROM commits ORDER BY first DESC")
	if err != nil {
		return fmt.Errorf("read commits (a data directory of an earlier writ has none: begin with a new one): %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var last []judge.Committed // newest first
	for len(last) < storage.RememberCommits && rows.Next() {
		var first int64
		var ids []byte
		if err := rows.Scan(&first, &ids); err != nil {
			return err
		}
		commits, err := codec.DecodeCommits(first, ids)
		if err != nil {
			return &DamageError{first, err.Error()}
		}
		slices.Reverse(commits)
		last = append(last, commits...)
	}
	for _, c := range slices.Backward(last) {
		if c.First+int64(c.N) > end {
			return &DamageError{end, fmt.Sprintf("a commit has records up to position %d, and the last one is missing", c.First+int64(c.N)-1)}
		}
		j.State.Remember(c)
	}
	return rows.Err()
}
