package sqlite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/group"
	"aob.dev/writ/storage/judge"
)

// write judges a group against the state and against each other, makes what was
// accepted durable in one transaction, shows it to the observer, and only then
// answers. Only this goroutine changes the state, so it reads it without the lock.
func (j *Journal) write(ctx context.Context, batch []*group.Request) {
	if err := j.Failure(); err != nil {
		group.AnswerAll(batch, err)
		return
	}
	d := judge.NewDraft(j.State, j.room())
	for _, r := range batch {
		if r.Judge != nil {
			r.Verdict = r.Judge(d)
		}
	}
	if len(d.Entries) > 0 {
		// A crash in this transaction leaves none of the group. A failure drops the draft,
		// which is the rollback; also a request that lost to another one of
		// the group gets the error, for its winner does not exist.
		failpoint.Hit(failpoint.JournalJudged)
		if err := j.db.transact(ctx, func() error { return j.writeDraft(ctx, d) }); err != nil {
			group.AnswerAll(batch, j.writeFailed(err))
			return
		}
		// A crash from here on loses only the answers: the records are stored,
		// and callers find them by commit ID or key.
		failpoint.Hit(failpoint.JournalDurable)
		j.publish(d)
		failpoint.Hit(failpoint.JournalPublished)
	}
	for _, r := range batch {
		if r.Judge != nil {
			r.Answer <- r.Verdict
		}
	}
	if len(d.Entries) > 0 {
		failpoint.Hit(failpoint.JournalAnswered)
		j.ckpt.between(ctx, j.db.writer)
	}
	j.Lone(ctx, batch)
}

// publish shows a durable draft to the observer and applies it to the state, as
// one step for all readers: a caller that has an outcome's position finds it.
func (j *Journal) publish(d *judge.Draft) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	j.tail.add(d.Entries)
	for _, e := range d.Entries {
		j.options.Observer(e)
		j.State.Apply(e)
	}
	for _, c := range d.Commits {
		j.State.Remember(c)
	}
}

// writeDraft inserts the records and the commits of a draft.
func (j *Journal) writeDraft(ctx context.Context, d *judge.Draft) error {
	for _, e := range d.Entries {
		var err error
		if j.body, err = codec.Append(j.body[:0], e, j.keys.fresh); err != nil {
			return fmt.Errorf("write record: %w", err)
		}
		kind := slices.Index(codec.Kinds, e.Record.Kind)
		if _, err := j.db.exec(ctx, "INSERT INTO records(position, kind, body) VALUES (?, ?, ?)", e.Record.Position, kind, j.body); err != nil {
			return fmt.Errorf("write record: %w", err)
		}
	}
	failpoint.Hit(failpoint.JournalRecords)
	if len(d.Commits) > 0 {
		first := j.State.Next()
		if _, err := j.db.exec(ctx, "INSERT INTO commits(first, ids) VALUES (?, ?)", first, codec.AppendCommits(nil, first, d.Commits)); err != nil {
			return fmt.Errorf("write commits: %w", err)
		}
	}
	failpoint.Hit(failpoint.JournalCommits)
	return nil
}

// room returns why no new intent is accepted. It checks once per group, after the decisions
// of the group were made.
func (j *Journal) room() func() error {
	return sync.OnceValue(func() error {
		if j.options.Admit != nil {
			if err := j.options.Admit(); err != nil {
				return fmt.Errorf("%w: %w", storage.ErrNotReady, err)
			}
		}
		switch r, err := j.Room(); {
		case err != nil:
			return err
		case r.Low():
			return storage.ErrFull
		default:
			return nil
		}
	})
}

// Room is what a journal may still fill of its disk, in bytes.
type Room struct {
	Free, Floor int64
	Stuck       bool // the write-ahead log could not be copied for want of room
}

// Low reports that no new intent is accepted.
func (r Room) Low() bool { return r.Free < r.Floor }

// Room looks at the disk. Without a floor it only reports whether the last copy fitted.
func (j *Journal) Room() (r Room, err error) {
	r.Stuck = j.ckpt.full.Load()
	if j.options.FreeFloor < 0 {
		return r, nil
	}
	r.Floor = j.options.FreeFloor
	if r.Free, err = Free(j.dir); err != nil {
		return r, fmt.Errorf("free disk: %w", err)
	}
	return r, nil
}

// Free is how many bytes of a directory's file system an ordinary user may still fill.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	free := uint64(st.Bavail) * uint64(st.Bsize) //nolint:gosec,unconvert // G115: signed or not depending on the system
	return int64(min(free, math.MaxInt64)), nil
}
