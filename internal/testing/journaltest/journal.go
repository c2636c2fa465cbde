// Package journaltest holds a journal in memory, for the tests of those that use one.
package journaltest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/judge"
)

// Journal is storage.Journal and storage.Records in memory, for the tests of
// their users. It passes TestJournal, so it refuses what a real one refuses: it
// judges as that does, one call at a time. Nothing is durable.
type Journal struct {
	mu      sync.Mutex // one caller at a time, the observer included
	observe storage.Observer
	entries []storage.Entry
	commits []judge.Committed
	state   *judge.State
	failure error // for the next write
	persist bool  // whether that write is stored anyway
	closed  bool
}

var (
	_ storage.Journal = (*Journal)(nil)
	_ storage.Records = (*Journal)(nil)
	_ storage.Eraser  = (*Journal)(nil)

	errClosed = errors.New("journal closed")
)

// NewJournal returns an empty journal. observe may be nil; it is called while
// the journal is locked and must not call it.
func NewJournal(observe storage.Observer) *Journal {
	if observe == nil {
		observe = func(storage.Entry) {}
	}
	return &Journal{observe: observe, state: judge.NewState()}
}

// Reopen returns a journal that holds what j holds, as after a restart: the
// observer is shown everything.
func (j *Journal) Reopen(observe storage.Observer) *Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	again := NewJournal(observe)
	again.append(j.entries, j.commits)
	return again
}

// FailNext lets the next call that writes fail with err. If persist is set its
// records are written all the same, as when the answer was lost; else none is.
func (j *Journal) FailNext(err error, persist bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failure, j.persist = err, persist
}

// Close ends the journal: later writes fail.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	return nil
}

// Lookup implements storage.Journal.
func (j *Journal) Lookup(ctx context.Context, key storage.Key) (storage.Holder, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return storage.Holder{}, false, err
	}
	h, found := j.state.Lookup(key)
	return h, found, nil
}

// Holder implements storage.Journal.
func (j *Journal) Holder(ctx context.Context, position int64) (storage.Holder, error) {
	if err := ctx.Err(); err != nil {
		return storage.Holder{}, err
	}
	j.mu.Lock()
	h, left, err := j.state.Holder(position)
	j.mu.Unlock()
	if left {
		return storage.HolderOf(ctx, j, position)
	}
	return h, err
}

// Commit implements storage.Journal.
func (j *Journal) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if err := judge.CheckKeys(c.Entries); err != nil {
		return storage.Result{}, err
	}
	return write(ctx, j, storage.Result{}, func(d *judge.Draft) (storage.Result, error) { return d.Commit(c) })
}

// Finish implements storage.Journal.
func (j *Journal) Finish(ctx context.Context, of int64, attempt int, outcome storage.Record, writes []storage.Subject) (int64, error) {
	return write(ctx, j, storage.NoPosition, func(d *judge.Draft) (int64, error) { return d.Finish(of, attempt, outcome, writes) })
}

// Take implements storage.Journal.
func (j *Journal) Take(ctx context.Context, of int64, takeover storage.Record) (int, error) {
	return write(ctx, j, 0, func(d *judge.Draft) (int, error) { return d.Take(of, takeover) })
}

// Erase implements storage.Eraser. FailNext fails it too, and persist has it
// erase all the same.
func (j *Journal) Erase(ctx context.Context, positions ...int64) error {
	return j.erase(ctx, positions, storage.Record.Erasable)
}

// EraseTransient implements storage.Eraser, and fails as Erase does.
func (j *Journal) EraseTransient(ctx context.Context, positions ...int64) error {
	return j.erase(ctx, positions, func(storage.Record) []string { return []string{storage.PartTransient} })
}

func (j *Journal) erase(ctx context.Context, positions []int64, parts func(storage.Record) []string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(ctx); err != nil {
		return err
	}
	err, persist := j.failure, j.persist
	if j.failure = nil; err != nil && !persist {
		return err
	}
	for _, at := range positions {
		if at < 0 || at >= j.state.Next() {
			return storage.ErrNotFound
		}
		e := &j.entries[at]
		e.Record, _ = e.Record.Without(parts(e.Record)...)
	}
	return err
}

// Get implements storage.Records.
func (j *Journal) Get(ctx context.Context, position int64) (storage.Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return storage.Record{}, err
	}
	if position < 0 || position >= j.state.Next() {
		return storage.Record{}, storage.ErrNotFound
	}
	return j.entries[position].Record, nil
}

// OpenIntents implements storage.Journal.
func (j *Journal) OpenIntents(ctx context.Context) ([]storage.OpenIntent, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.OpenIntents(), ctx.Err()
}

// Scan implements storage.Records.
func (j *Journal) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for p, end := max(from, 0), j.Next(); p < end; p++ {
			if r, err := j.Get(ctx, p); !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Next implements storage.Records.
func (j *Journal) Next() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.Next()
}

func (j *Journal) usable(ctx context.Context) error {
	if j.closed {
		return errClosed
	}
	return ctx.Err()
}

// write appends what is accepted, or fails as FailNext wants. With an error it returns
// none.
func write[A any](ctx context.Context, j *Journal, none A, ask func(*judge.Draft) (A, error)) (A, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(ctx); err != nil {
		return none, err
	}
	d := judge.NewDraft(j.state, func() error { return nil })
	got, err := ask(d)
	if err != nil {
		return none, err
	}
	if len(d.Entries) == 0 {
		return got, nil
	}
	err, persist := j.failure, j.persist
	j.failure = nil
	if err == nil || persist {
		j.append(d.Entries, d.Commits)
	}
	if err != nil {
		return none, err
	}
	return got, nil
}

// append what was accepted; records do not share the caller's maps.
func (j *Journal) append(entries []storage.Entry, commits []judge.Committed) {
	for _, e := range entries {
		e.Record.Parts, e.Record.Salts = maps.Clone(e.Record.Parts), maps.Clone(e.Record.Salts)
		j.entries = append(j.entries, e)
		j.state.Apply(e)
		j.observe(e)
	}
	for _, c := range commits {
		j.commits = append(j.commits, c)
		j.state.Remember(c)
	}
}
