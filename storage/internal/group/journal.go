package group

import (
	"context"
	"errors"
	"sync"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/judge"
)

// Request is one call to a journal that waits for the writer.
type Request struct {
	Judge     func(*judge.Draft) error    // run by the writer; adds to the draft what it accepts
	Exclusive func(context.Context) error // in place of Judge: run by the writer after the group
	Verdict   error                       // what Judge returned
	Answer
}

// Journal is what all drivers do alike: they ask the state in memory, and have the writer judge
// what is to be written. A driver writes, and applies what is durable.
type Journal struct {
	Calls   *Queue[*Request]
	Records storage.Records // where an intent is read that was removed from the state

	Mu    sync.RWMutex // guards State
	State *judge.State
}

// Lookup returns the holder of a key; see storage.Journal.
func (j *Journal) Lookup(ctx context.Context, key storage.Key) (storage.Holder, bool, error) {
	if err := errors.Join(ctx.Err(), j.Calls.Failure()); err != nil {
		return storage.Holder{}, false, err
	}
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	h, found := j.State.Lookup(key)
	return h, found, nil
}

// Holder returns the state of an intent; see storage.Journal.
func (j *Journal) Holder(ctx context.Context, position int64) (storage.Holder, error) {
	if err := errors.Join(ctx.Err(), j.Calls.Failure()); err != nil {
		return storage.Holder{}, err
	}
	j.Mu.RLock()
	h, left, err := j.State.Holder(position)
	j.Mu.RUnlock()
	if left {
		return storage.HolderOf(ctx, j.Records, position)
	}
	return h, err
}

// OpenIntents lists the open intents; see storage.Journal.
func (j *Journal) OpenIntents(ctx context.Context) ([]storage.OpenIntent, error) {
	if err := errors.Join(ctx.Err(), j.Calls.Failure()); err != nil {
		return nil, err
	}
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	return j.State.OpenIntents(), nil
}

// Next is the position that the next record will have; see storage.Records.
func (j *Journal) Next() int64 {
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	return j.State.Next()
}

// Commit writes all entries or none; see storage.Journal.
func (j *Journal) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if err := judge.CheckKeys(c.Entries); err != nil {
		return storage.Result{}, err
	}
	return ask(ctx, j, storage.Result{}, func(d *judge.Draft) (storage.Result, error) { return d.Commit(c) })
}

// Finish writes the outcome of an open intent; see storage.Journal.
func (j *Journal) Finish(ctx context.Context, of int64, attempt int, outcome storage.Record, writes []storage.Subject) (int64, error) {
	return ask(ctx, j, storage.NoPosition, func(d *judge.Draft) (int64, error) { return d.Finish(of, attempt, outcome, writes) })
}

// Take begins another attempt at an open intent; see storage.Journal.
func (j *Journal) Take(ctx context.Context, of int64, takeover storage.Record) (int, error) {
	return ask(ctx, j, 0, func(d *judge.Draft) (int, error) { return d.Take(of, takeover) })
}

// ask has the writer judge a request, and returns what judge returned, or none with an
// error.
func ask[A any](ctx context.Context, j *Journal, none A, accept func(*judge.Draft) (A, error)) (A, error) {
	var got A // read only after the answer: the writer may run accept after ctx has ended
	r := &Request{Answer: NewAnswer(), Judge: func(d *judge.Draft) (err error) {
		got, err = accept(d)
		return err
	}}
	if err := j.Calls.Do(ctx, r); err != nil {
		return none, err
	}
	return got, nil
}

// DoAlone has the writer run fn between two groups.
func (j *Journal) DoAlone(ctx context.Context, fn func(context.Context) error) error {
	return j.Calls.Do(ctx, &Request{Exclusive: fn, Answer: NewAnswer()})
}

// Lone runs those of a batch that are to be alone, and answers them.
func (j *Journal) Lone(ctx context.Context, batch []*Request) {
	for _, r := range batch {
		if r.Exclusive == nil {
			continue
		}
		err := j.Calls.Failure()
		if err == nil {
			err = r.Exclusive(ctx)
		}
		r.Answer <- err
	}
}
