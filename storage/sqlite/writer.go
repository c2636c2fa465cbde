package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/judge"
)

// request is one call that waits for the writer.
type request struct {
	judge   func(*judge.Draft) answer   // run by the writer; adds to the draft what it accepts
	alone   func(context.Context) error // in place of judge: run by the writer behind the group
	verdict answer
	answer  chan answer // buffered: the writer never waits for a caller that went away
}

// answer of a request; each call reads its own member.
type answer struct {
	result   storage.Result
	position int64
	attempt  int
	err      error
}

// ask hands a request to the writer and waits. An error of its own means that
// nothing is known; the answer carries the judgement.
func (j *Journal) ask(ctx context.Context, accept func(*judge.Draft) answer) (answer, error) {
	return j.hand(ctx, &request{judge: accept, answer: make(chan answer, 1)})
}

// hand a request to the writer and wait for its answer.
func (j *Journal) hand(ctx context.Context, r *request) (answer, error) {
	if err := j.failed.get(); err != nil {
		return answer{}, err
	}
	if err := j.requests.submit(ctx, r); err != nil {
		return answer{}, err
	}
	return await(ctx, r.answer, j.requests.done)
}

// write judges a group against the state and against each other, makes what was
// accepted durable in one transaction, shows it to the observer, and only then
// answers. Only this goroutine changes the state, so it reads it without the lock.
func (j *Journal) write(ctx context.Context, batch []*request) {
	if err := j.failed.get(); err != nil {
		refuse(batch, err)
		return
	}
	d := judge.NewDraft(j.state, j.room())
	for _, r := range batch {
		if r.judge != nil {
			r.verdict = r.judge(d)
		}
	}
	if len(d.Entries) > 0 {
		// A crash in store leaves none of the group. A failure drops the draft,
		// which is the rollback; also a request that lost to another one of
		// the group gets the error, for its winner does not exist.
		failpoint.Hit(failpoint.JournalJudged)
		if err := j.store(ctx, d); err != nil {
			refuse(batch, j.storeFailed(ctx, err))
			return
		}
		// A crash from here on loses only the answers: the records are there,
		// and callers find them by commit ID or key.
		failpoint.Hit(failpoint.JournalDurable)
		j.publish(d)
		failpoint.Hit(failpoint.JournalPublished)
	}
	for _, r := range batch {
		if r.judge != nil {
			r.answer <- r.verdict
		}
	}
	if len(d.Entries) > 0 {
		failpoint.Hit(failpoint.JournalAnswered)
		j.ckpt.between(ctx, j.db.writer)
	}
	for _, r := range batch {
		if r.alone != nil {
			err := j.failed.get()
			if err == nil {
				err = r.alone(ctx)
			}
			r.answer <- answer{err: err}
		}
	}
}

func refuse(batch []*request, err error) {
	for _, r := range batch {
		r.answer <- answer{err: err}
	}
}

// publish shows a durable draft to the observer and folds it into the state, as
// one step for all readers: who was told of an outcome finds it.
func (j *Journal) publish(d *judge.Draft) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range d.Entries {
		j.observe(e)
		j.state.Apply(e)
	}
	for _, c := range d.Commits {
		j.state.Remember(c)
	}
}

// store writes a draft in one transaction. COMMIT returns after the sync.
func (j *Journal) store(ctx context.Context, d *judge.Draft) error {
	if _, err := j.statements.begin.ExecContext(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, e := range d.Entries {
		j.body = appendBody(j.body[:0], e)
		kind := slices.Index(kinds, e.Record.Kind)
		if _, err := j.statements.record.ExecContext(ctx, e.Record.Position, kind, j.body); err != nil {
			return fmt.Errorf("write record: %w", err)
		}
	}
	failpoint.Hit(failpoint.JournalRecords)
	if len(d.Taken)+len(d.Commits) > 0 {
		first := j.state.Next()
		keys, commits := []byte{}, []byte{}
		for _, t := range d.Taken {
			keys = appendTaken(keys, first, t)
		}
		for _, c := range d.Commits {
			commits = appendCommitted(commits, first, c)
		}
		if _, err := j.statements.keylog.ExecContext(ctx, first, keys, commits); err != nil {
			return fmt.Errorf("write keylog: %w", err)
		}
	}
	failpoint.Hit(failpoint.JournalKeylog)
	if _, err := j.statements.commit.ExecContext(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// storeFailed tells a full disk, after which the file is as before, from a
// failed write or sync, after which nobody knows what a later sync would claim.
func (j *Journal) storeFailed(ctx context.Context, err error) error {
	// SQLite may have rolled back by itself, and then this fails; if a
	// transaction is left open, the next BEGIN fails and is fatal.
	_, _ = j.statements.rollback.ExecContext(ctx)
	if isFull(err) {
		return errors.Join(storage.ErrFull, err)
	}
	j.fail(err)
	return j.failed.get()
}

// room says why no new order is taken; it asks once per group, and whoever
// decided before did so before it asks.
func (j *Journal) room() func() error {
	return sync.OnceValue(func() error {
		if j.admit != nil {
			if err := j.admit(); err != nil {
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

// Low says that no new order is taken.
func (r Room) Low() bool { return r.Free < r.Floor }

// Room looks at the disk; without a floor, at nothing but whether copies fit.
func (j *Journal) Room() (r Room, err error) {
	r.Stuck = j.ckpt.full.Load()
	if j.floor < 0 {
		return r, nil
	}
	r.Floor = j.floor
	if r.Free, err = freeBytes(j.dir); err != nil {
		return r, fmt.Errorf("free disk: %w", err)
	}
	return r, nil
}

// statements are prepared on the writer's connection.
type statements struct {
	begin, record, keylog, commit, rollback *sql.Stmt
}

func (s *statements) texts() []text {
	return []text{
		{&s.begin, "BEGIN IMMEDIATE"},
		{&s.record, "INSERT INTO records(position, kind, body) VALUES (?, ?, ?)"},
		{&s.keylog, "INSERT INTO keylog(first, keys, commits) VALUES (?, ?, ?)"},
		{&s.commit, "COMMIT"},
		{&s.rollback, "ROLLBACK"},
	}
}
