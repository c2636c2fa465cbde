package storagetest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/storage"
)

// Journal is storage.Journal and storage.Records in memory, for the tests of
// their users. It passes TestJournal, so it refuses what a real one refuses; it
// is written to be compared with the contract, not to be fast. Nothing is durable.
type Journal struct {
	mu      sync.Mutex // one caller at a time, the observer included
	observe storage.Observer
	entries []storage.Entry
	keys    map[storage.Key]int64
	touched map[storage.Subject]int64
	orders  map[int64]*memoryOrder
	commits map[string]storage.Result
	latest  time.Time
	failure error // for the next write
	persist bool  // whether that write is kept all the same
	closed  bool
}

type memoryOrder struct {
	storage.Holder
	attempt int
}

var (
	_ Opened         = (*Journal)(nil)
	_ storage.Eraser = (*Journal)(nil)

	errClosed = errors.New("storagetest: journal closed")
)

// NewJournal returns an empty journal. observe may be nil; it is called while
// the journal is locked and must not call it.
func NewJournal(observe storage.Observer) *Journal {
	if observe == nil {
		observe = func(storage.Entry) {}
	}
	return &Journal{
		observe: observe,
		keys:    make(map[storage.Key]int64), touched: make(map[storage.Subject]int64),
		orders: make(map[int64]*memoryOrder), commits: make(map[string]storage.Result),
	}
}

// Reopen returns a journal that holds what j holds, as after a restart: the
// observer is shown everything.
func (j *Journal) Reopen(observe storage.Observer) *Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	again := NewJournal(observe)
	maps.Copy(again.commits, j.commits)
	for _, e := range j.entries {
		again.append(e)
	}
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
	p, found := j.keys[key]
	if err := ctx.Err(); err != nil || !found {
		return storage.Holder{Position: storage.Nobody, Outcome: storage.Nobody}, false, err
	}
	return j.orders[p].Holder, true, nil
}

// Holder implements storage.Journal.
func (j *Journal) Holder(ctx context.Context, position int64) (storage.Holder, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o, ok := j.orders[position]
	if err := ctx.Err(); err != nil {
		return storage.Holder{}, err
	}
	if !ok {
		return storage.Holder{}, storage.ErrNotFound
	}
	return o.Holder, nil
}

// Commit implements storage.Journal.
func (j *Journal) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(ctx); err != nil {
		return storage.Result{}, err
	}
	if before, ok := j.commits[c.ID]; ok {
		return before, nil
	}
	entries, err := j.positioned(c)
	if err != nil {
		return storage.Result{}, err
	}
	for i, e := range entries {
		if p, taken := j.keys[e.Key]; e.Take && taken && (p != e.Holder || j.orders[p].State != storage.StateDone) {
			return storage.Result{Verdict: storage.Lost, Winner: p, Entry: i}, nil
		}
	}
	stale := storage.Result{Verdict: storage.Stale, Winner: storage.Nobody}
	for _, a := range c.Asserts {
		if j.lastTouch(a.Subject) != a.At {
			return stale, nil
		}
	}
	if moved, err := j.moved(entries); moved || err != nil {
		return stale, err
	}
	won := storage.Result{Verdict: storage.Won, Winner: storage.Nobody}
	for _, e := range entries {
		won.Positions = append(won.Positions, e.Record.Position)
	}
	if err := j.write(entries...); err != nil {
		if j.next() > won.Positions[0] {
			j.commits[c.ID] = won
		}
		return storage.Result{}, err
	}
	j.commits[c.ID] = won
	return won, nil
}

// Finish implements storage.Journal.
func (j *Journal) Finish(ctx context.Context, of int64, attempt int, outcome storage.Record, touches []storage.Subject) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o, err := j.openOrder(ctx, of, outcome.Kind == storage.KindOutcome)
	if err != nil {
		return storage.Nobody, err
	}
	if attempt != o.attempt {
		return storage.Nobody, storage.ErrFinished
	}
	outcome = stored(outcome, j.next())
	err = j.write(storage.Entry{Record: outcome, Of: of, Holder: storage.Nobody, Touches: touches})
	return outcome.Position, err
}

// Take implements storage.Journal.
func (j *Journal) Take(ctx context.Context, of int64, takeover storage.Record) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o, err := j.openOrder(ctx, of, takeover.Kind == storage.KindTakeover)
	if err != nil {
		return 0, err
	}
	attempt := o.attempt + 1
	return attempt, j.write(storage.Entry{Record: stored(takeover, j.next()), Of: of, Holder: storage.Nobody})
}

// Erase implements storage.Eraser. FailNext fails it too, and persist has it
// erase all the same.
func (j *Journal) Erase(ctx context.Context, what ...storage.Erasure) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(ctx); err != nil {
		return err
	}
	err, persist := j.failure, j.persist
	if j.failure = nil; err != nil && !persist {
		return err
	}
	for _, x := range what {
		if x.Position < 0 || x.Position >= j.next() {
			return storage.ErrNotFound
		}
		j.entries[x.Position].Record, _ = j.entries[x.Position].Record.Without(x.Parts...)
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
	if position < 0 || position >= j.next() {
		return storage.Record{}, storage.ErrNotFound
	}
	return j.entries[position].Record, nil
}

// OpenOrders implements storage.Records.
func (j *Journal) OpenOrders(ctx context.Context) ([]storage.OpenOrder, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	open := []storage.OpenOrder{}
	for p, o := range j.orders {
		if o.State == storage.StateOpen {
			open = append(open, storage.OpenOrder{Position: p, Attempt: o.attempt})
		}
	}
	slices.SortFunc(open, func(a, b storage.OpenOrder) int { return cmp.Compare(a.Position, b.Position) })
	return open, ctx.Err()
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
	return j.next()
}

func (j *Journal) next() int64 { return int64(len(j.entries)) }

func (j *Journal) usable(ctx context.Context) error {
	if j.closed {
		return errClosed
	}
	return ctx.Err()
}

func (j *Journal) lastTouch(s storage.Subject) int64 {
	if p, ok := j.touched[s]; ok {
		return p
	}
	return storage.Nobody
}

func (j *Journal) openOrder(ctx context.Context, of int64, kind bool) (*memoryOrder, error) {
	if err := j.usable(ctx); err != nil {
		return nil, err
	}
	o, ok := j.orders[of]
	switch {
	case !kind:
		return nil, errors.New("storagetest: wrong kind of record")
	case !ok:
		return nil, storage.ErrNotFound
	case o.State == storage.StateHeld:
		return nil, storage.ErrHeld
	case o.State == storage.StateDone:
		return nil, storage.ErrFinished
	}
	return o, nil
}

// write appends what was accepted, or fails as FailNext said.
func (j *Journal) write(entries ...storage.Entry) error {
	err, persist := j.failure, j.persist
	j.failure = nil
	if err == nil || persist {
		for _, e := range entries {
			j.append(e)
		}
	}
	return err
}

func (j *Journal) append(e storage.Entry) {
	p := e.Record.Position
	if e.Record.At.Before(j.latest) {
		e.Record.At = j.latest
	}
	j.latest = e.Record.At
	j.entries = append(j.entries, e)
	if e.Take {
		j.keys[e.Key] = p
	}
	for _, s := range e.Touches {
		j.touched[s] = p
	}
	switch e.Record.Kind {
	case storage.KindOrder:
		o := &memoryOrder{Holder: storage.Holder{Position: p, State: storage.StateHeld, Outcome: storage.Nobody}, attempt: 1}
		if e.Open {
			o.State = storage.StateOpen
		}
		if e.Open || e.Take {
			j.orders[p] = o
		}
	case storage.KindOutcome:
		j.orders[e.Of] = &memoryOrder{Holder: storage.Holder{Position: e.Of, State: storage.StateDone, Outcome: p}}
	case storage.KindRelease:
		j.orders[e.Of].State = storage.StateOpen
	case storage.KindTakeover:
		j.orders[e.Of].attempt++
	case storage.KindControl:
	}
	j.observe(e)
}
