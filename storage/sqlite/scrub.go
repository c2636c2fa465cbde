package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

var _ storage.Scrubber = (*Documents)(nil)

// mergePages is how many pages of the text index one step of a scrub writes. Other writes come
// between two steps.
const mergePages = 64

// scrubPause is the pause before a step is tried again that readers, or a full disk, are in the way
// of.
const scrubPause = time.Second

// scrubs are the requests to scrub. The writer alone uses the number.
type scrubs struct {
	number int
	asked  chan struct{}
}

// Scrub has the words of documents that were removed or replaced leave the file, and its write-ahead
// log; see storage.Scrubber. What a document was is overwritten with zeros as it goes; its words stay
// in the text index until that is merged, and all of it in the write-ahead log.
//
// Crash: the file says that it is to be scrubbed, and the next opening begins again.
func (d *Documents) Scrub(ctx context.Context) error {
	_, err := d.alone(ctx, func(ctx context.Context) (int, error) {
		d.scrubs.number++
		select {
		case d.scrubs.asked <- struct{}{}:
		default: // it is asked already
		}
		_, err := d.db.exec(ctx, "INSERT INTO made(what, by) VALUES ('residue', '') ON CONFLICT(what) DO NOTHING")
		return 0, err
	})
	return err
}

// alone has the writer run a step outside of a transaction of its own.
func (d *Documents) alone(ctx context.Context, step func(context.Context) (int, error)) (int, error) {
	return d.submit(ctx, &change{step: step})
}

// takeStep runs the step of a change, and answers.
func (d *Documents) takeStep(ctx context.Context, c *change) bool {
	var err error
	if c.n, err = c.step(ctx); err != nil && !isBusy(err) && !errors.Is(err, errReaders) {
		err = d.writeFailed(err)
	}
	c.Answer <- err
	return true
}

// resumeScrub asks for a scrub that a crash has interrupted.
func (d *Documents) resumeScrub(ctx context.Context) error {
	d.scrubs.asked = make(chan struct{}, 1)
	var what string
	err := d.db.writer.QueryRowContext(ctx, "SELECT what FROM made WHERE what = 'residue'").Scan(&what)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	d.scrubs.asked <- struct{}{}
	return err
}

// keepScrubbing scrubs when it is asked to, until ctx ends or the store fails.
func (d *Documents) keepScrubbing(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.scrubs.asked:
		}
		for err := d.scrub(ctx); err != nil; err = d.scrub(ctx) {
			if d.Failure() != nil || clock.Sleep(ctx, scrubPause) != nil {
				return
			}
		}
	}
}

// scrub merges the text index into one segment, truncates the write-ahead log, and then forgets the
// requests that came before. The error is that something is in the way for now.
func (d *Documents) scrub(ctx context.Context) error {
	number, err := d.alone(ctx, func(context.Context) (int, error) { return d.scrubs.number, nil })
	if err != nil {
		return err
	}
	for pages := -mergePages; ; pages = mergePages { // the first step begins anew
		changed, err := d.alone(ctx, func(ctx context.Context) (int, error) { return d.merge(ctx, pages) })
		if err != nil {
			return err
		}
		if changed < 2 { // as FTS5 has it: nothing is left to merge
			break
		}
	}
	_, err = d.alone(ctx, func(ctx context.Context) (int, error) {
		if err := d.truncateLog(ctx); err != nil || d.scrubs.number != number {
			return 0, err
		}
		_, err := d.db.exec(ctx, "DELETE FROM made WHERE what = 'residue'")
		return 0, err
	})
	return err
}

// merge writes some pages of the merged text index, and returns how many rows that has changed.
func (d *Documents) merge(ctx context.Context, pages int) (changed int, err error) {
	var before, after int
	total := func(n *int) error {
		return d.db.writer.QueryRowContext(ctx, "SELECT total_changes()").Scan(n)
	}
	if err := total(&before); err != nil {
		return 0, err
	}
	if _, err := d.db.exec(ctx, "INSERT INTO text(text, rank) VALUES ('merge', ?)", pages); err != nil {
		return 0, fmt.Errorf("merge the text index: %w", err)
	}
	err = total(&after)
	return after - before, err
}

// errReaders says that readers are in the way.
var errReaders = errors.New("somebody reads")

// truncateLog copies the write-ahead log into the file, and makes it empty.
func (d *Documents) truncateLog(ctx context.Context) error {
	if err := waitFor(ctx, d.db.writer, restartWait); err != nil {
		return err
	}
	var busy bool
	var frames, copied int
	err := d.db.writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied)
	if err == nil && busy {
		err = errReaders
	}
	return errors.Join(err, waitFor(ctx, d.db.writer, usualWait))
}
