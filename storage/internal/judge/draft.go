package judge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// commitIDLimit bounds a commit ID in bytes.
const commitIDLimit = 128

// Draft is a group that is being judged: the durable state below, and above it
// what the accepted requests of the group will change. Dropping it is the
// rollback: the state was not touched.
type Draft struct {
	base     *State
	latest   time.Time       // of what is durable and what is accepted
	room     func() error    // why no new order is taken
	Entries  []storage.Entry // accepted, positions set
	Taken    []Taken
	Commits  []Committed
	ids      map[string]Committed
	keys     map[storage.Key]int64
	subjects map[digest]int64
	orders   map[int64]order
}

// NewDraft of a group above base. Room says why no new order is taken; it is asked of
// every commit with one that would win.
func NewDraft(base *State, room func() error) *Draft {
	return &Draft{
		base: base, latest: base.latest, room: room, ids: make(map[string]Committed),
		keys: make(map[storage.Key]int64), subjects: make(map[digest]int64), orders: make(map[int64]order),
	}
}

func (d *Draft) next() int64 { return d.base.next + int64(len(d.Entries)) }

func (d *Draft) holder(k storage.Key) int64 {
	if p, ok := d.keys[k]; ok {
		return p
	}
	return d.base.holder(k)
}

func (d *Draft) touched(s storage.Subject) int64 {
	k := subjectDigest(s)
	if p, ok := d.subjects[k]; ok {
		return p
	}
	if p, ok := d.base.subjects[k]; ok {
		return p
	}
	return storage.Nobody
}

func (d *Draft) order(position int64) order {
	if o, ok := d.orders[position]; ok {
		return o
	}
	return d.base.order(position)
}

func (d *Draft) seen(id string) (Committed, bool) {
	if c, ok := d.ids[id]; ok {
		return c, true
	}
	c, ok := d.base.recent.byID[id]
	return c, ok
}

// Commit judges one commit, and adds it to the group if it wins. The order of
// the questions is the contract's: own ID, lost, stale, then room.
func (d *Draft) Commit(c storage.Commit) (storage.Result, error) {
	if c.ID == "" || len(c.ID) > commitIDLimit {
		return storage.Result{}, fmt.Errorf("commit: the ID must have 1 to %d bytes", commitIDLimit)
	}
	if before, ok := d.seen(c.ID); ok {
		return before.result(), nil
	}
	entries, err := validateEntries(c.Entries, d.next())
	if err != nil {
		return storage.Result{}, err
	}
	for i, e := range entries {
		if !e.Take {
			continue
		}
		// A holder without an outcome was never freed, whatever the caller says.
		if now := d.holder(e.Key); now != storage.Nobody && (now != e.Holder || d.order(now).place < 0) {
			return storage.Result{Verdict: storage.Lost, Winner: now, Entry: i}, nil
		}
	}
	if len(c.Asserts) > 0 && c.Seen < d.base.window.Cut {
		return storage.Result{Verdict: storage.Stale, Winner: storage.Nobody}, nil
	}
	for _, a := range c.Asserts {
		if d.touched(a.Subject) != a.At {
			return storage.Result{Verdict: storage.Stale, Winner: storage.Nobody}, nil
		}
	}
	moves, err := d.moves(entries)
	if errors.Is(err, errMoved) {
		return storage.Result{Verdict: storage.Stale, Winner: storage.Nobody}, nil
	}
	if err != nil {
		return storage.Result{}, err
	}
	if slices.ContainsFunc(entries, func(e storage.Entry) bool { return e.Open || e.Take }) {
		if err := d.room(); err != nil {
			return storage.Result{}, err
		}
	}
	mark := Committed{ID: c.ID, First: d.next(), N: len(entries)}
	d.accept(entries, moves)
	d.Commits = append(d.Commits, mark)
	d.ids[mark.ID] = mark
	return mark.result(), nil
}

// Finish judges the outcome of an open order.
func (d *Draft) Finish(of int64, attempt int, outcome storage.Record, touches []storage.Subject) (int64, error) {
	if outcome.Kind != storage.KindOutcome {
		return storage.Nobody, fmt.Errorf("finish: the record is %q, not an outcome", outcome.Kind)
	}
	o, err := d.openOrder(of)
	if err != nil {
		return storage.Nobody, err
	}
	if attempt != o.attempt {
		return storage.Nobody, storage.ErrFinished
	}
	position := d.next()
	return position, d.append(storage.Entry{Record: outcome, Of: of, Touches: touches})
}

// Take judges a takeover and returns the attempt that begins.
func (d *Draft) Take(of int64, takeover storage.Record) (int, error) {
	if takeover.Kind != storage.KindTakeover {
		return 0, fmt.Errorf("take: the record is %q, not a takeover", takeover.Kind)
	}
	o, err := d.openOrder(of)
	if err != nil {
		return 0, err
	}
	return o.attempt + 1, d.append(storage.Entry{Record: takeover, Of: of})
}

func (d *Draft) openOrder(of int64) (order, error) {
	o := d.order(of)
	switch {
	case o.place == notAnOrder:
		return o, storage.ErrNotFound
	case o.place == isHeld:
		return o, storage.ErrHeld
	case o.place != isOpen:
		return o, storage.ErrFinished
	}
	return o, nil
}

// append adds a single entry about an order that was found open.
func (d *Draft) append(e storage.Entry) error {
	entries, err := validateEntries([]storage.Entry{e}, d.next())
	if err != nil {
		return err
	}
	moves, err := d.moves(entries)
	if err != nil {
		return err
	}
	d.accept(entries, moves)
	return nil
}

func (d *Draft) accept(entries []storage.Entry, moves map[int64]order) {
	for i, e := range entries {
		// The one place where a record gets its time for good.
		d.latest = later(d.latest, e.Record.At)
		entries[i].Record.At = d.latest
		position := e.Record.Position
		if e.Take {
			d.keys[e.Key] = position
			d.Taken = append(d.Taken, Taken{e.Key, position})
		}
		for _, s := range e.Touches {
			d.subjects[subjectDigest(s)] = position
		}
	}
	for position, o := range moves {
		d.orders[position] = o
	}
	d.Entries = append(d.Entries, entries...)
}

// errMoved says that an order is no longer in the state that an entry needs.
var errMoved = errors.New("order moved on")

// moves folds the entries of one commit over the orders that they are about, in
// order, without changing the draft.
func (d *Draft) moves(entries []storage.Entry) (map[int64]order, error) {
	moves := make(map[int64]order, len(entries))
	now := func(position int64) order {
		if o, ok := moves[position]; ok {
			return o
		}
		return d.order(position)
	}
	first := d.next()
	for i, e := range entries {
		if e.Of != storage.Nobody {
			if err := legal(e, entries, first, now(e.Of)); err != nil {
				return nil, fmt.Errorf("commit: entry %d: %w", i, err)
			}
		}
		if about, o, ok := after(e, e.Record.Position, now); ok {
			moves[about] = o
		}
	}
	return moves, nil
}

// legal asks whether an entry may follow on what its order is now.
func legal(e storage.Entry, entries []storage.Entry, first int64, o order) error {
	if o.place == notAnOrder {
		// An order that took no key and is not open may still end in its own commit.
		own := e.Of >= first && e.Of < e.Record.Position && entries[e.Of-first].Record.Kind == storage.KindOrder
		if own && e.Record.Kind == storage.KindOutcome {
			return nil
		}
		return fmt.Errorf("no order at position %d", e.Of)
	}
	ok := false
	switch e.Record.Kind {
	case storage.KindOutcome:
		ok = o.place == isOpen || o.place == isHeld
	case storage.KindRelease:
		ok = o.place == isHeld
	case storage.KindTakeover:
		ok = o.place == isOpen
	case storage.KindOrder, storage.KindControl:
	}
	if !ok {
		return errMoved
	}
	return nil
}
