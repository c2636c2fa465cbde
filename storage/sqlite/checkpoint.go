package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"aob.dev/writ/internal/failpoint"
)

const (
	// checkpointEvery is how often the background copies the write-ahead log
	// into the database, while there is something to copy.
	checkpointEvery = 25 * time.Millisecond
	// restartFrames is the length of the write-ahead log, in pages, from which
	// the writer restarts it (64 MB).
	restartFrames = 4000
	// longFrames is the length from which the writer waits for readers to restart the log,
	// restartWait at a time, and once in restartPause.
	longFrames   = 2 * restartFrames
	restartWait  = 200 * time.Millisecond
	restartPause = time.Second
)

// checkpointer keeps the write-ahead log short without making commits wait: a
// second connection copies beside the writer, and only when the log is long and
// nearly copied does the writer itself copy the rest and restart the log.
// SQLite's own automatic checkpoint would do all of it inside a commit.
type checkpointer struct {
	conn    *sql.Conn
	failed  func(error) // a failed sync; may be called more than once
	dirty   atomic.Bool // something was written since the last copy
	restart atomic.Bool // the writer should restart the log
	long    atomic.Bool // the log is longer than it should become
	full    atomic.Bool // the last copy found no room
	waited  time.Time   // when the writer last waited for readers; it alone uses it
}

// run copies until ctx ends.
func (c *checkpointer) run(ctx context.Context) {
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.dirty.Swap(false) {
				c.copy(ctx)
			}
		}
	}
}

func (c *checkpointer) copy(ctx context.Context) {
	// Not the caller's cancellation: interrupting a checkpoint gains nothing.
	frames, copied, err := checkpoint(context.WithoutCancel(ctx), c.conn, "PASSIVE")
	if err != nil {
		c.retry(err)
		return
	}
	c.full.Store(false)
	failpoint.Hit(failpoint.JournalCopied)
	if copied < frames {
		c.dirty.Store(true)
	}
	c.long.Store(frames > longFrames)
	if frames > longFrames || frames > restartFrames && frames-copied < frames/4 {
		c.restart.Store(true)
	}
}

// retry tries a copy again that readers were in the way of, or for which there was
// no room: the log has all of it still, so nothing is in doubt. Any other error is
// the last one.
func (c *checkpointer) retry(err error) {
	if !isBusy(err) && !isFull(err) {
		c.failed(err)
		return
	}
	c.full.Store(isFull(err))
	c.dirty.Store(true)
}

// between is called by the writer after a group was answered.
func (c *checkpointer) between(ctx context.Context, writer *sql.Conn) {
	c.dirty.Store(true)
	if !c.restart.Swap(false) {
		return
	}
	// Readers in the way are not waited for: the next round tries again. Where the log has
	// become long, there is always one of them: those that come while the writer waits read
	// the database alone, so they end.
	wait := time.Duration(0)
	if c.long.Load() && time.Since(c.waited) > restartPause {
		wait, c.waited = restartWait, time.Now()
	}
	if err := waitFor(ctx, writer, wait); err != nil {
		c.failed(err)
		return
	}
	if _, _, err := checkpoint(ctx, writer, "RESTART"); err != nil {
		c.retry(err)
	}
	if err := waitFor(ctx, writer, usualWait); err != nil {
		c.failed(err)
	}
}

// usualWait is how long a statement waits for other connections.
const usualWait = time.Second

// waitFor has the statements of a connection wait so long for others.
func waitFor(ctx context.Context, c *sql.Conn, wait time.Duration) error {
	_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout=%d", wait.Milliseconds()))
	return err
}

// checkpoint runs one checkpoint and returns how long the log is and how much of it
// is in the database, in pages.
func checkpoint(ctx context.Context, c *sql.Conn, mode string) (frames, copied int, err error) {
	var busy bool // others were in the way of what the mode wants
	err = c.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &copied)
	if err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return frames, copied, nil
}
