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
// rollback: the state is unchanged.
type Draft struct {
	base     *State
	latest   time.Time       // of what is durable and what is accepted
	room     func() error    // why no new intent is accepted
	Entries  []storage.Entry // accepted, positions set
	Commits  []Committed
	ids      map[string]Committed
	keys     map[storage.Key]int64
	subjects map[digest]int64
	intents  map[int64]intent
}

// NewDraft returns the draft of a group above base. Room says why no new intent is accepted; it is called for
// every commit with an intent that would win.
func NewDraft(base *State, room func() error) *Draft {
	return &Draft{
		base: base, latest: base.latest, room: room, ids: make(map[string]Committed),
		keys: make(map[storage.Key]int64), subjects: make(map[digest]int64), intents: make(map[int64]intent),
	}
}

func (d *Draft) next() int64 { return d.base.next + int64(len(d.Entries)) }

func (d *Draft) holder(k storage.Key) int64 {
	if p, ok := d.keys[k]; ok {
		return p
	}
	return d.base.holder(k)
}

func (d *Draft) lastWrite(s storage.Subject) int64 {
	k := subjectDigest(s)
	if p, ok := d.subjects[k]; ok {
		return p
	}
	if p, ok := d.base.subjects[k]; ok {
		return p
	}
	return storage.NoPosition
}

func (d *Draft) intent(position int64) intent {
	if o, ok := d.intents[position]; ok {
		return o
	}
	return d.base.intent(position)
}

func (d *Draft) committed(id string) (Committed, bool) {
	if c, ok := d.ids[id]; ok {
		return c, true
	}
	c, ok := d.base.recent.byID[id]
	return c, ok
}

// Commit judges one commit, and adds it to the group if it wins. The order of
// the checks is the contract's: own ID, lost, stale, then room.
func (d *Draft) Commit(c storage.Commit) (storage.Result, error) {
	if c.ID == "" || len(c.ID) > commitIDLimit {
		return storage.Result{}, fmt.Errorf("commit: the ID must have 1 to %d bytes", commitIDLimit)
	}
	if before, ok := d.committed(c.ID); ok {
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
		if now := d.holder(e.Key); now != storage.NoPosition && (now != e.Holder || d.intent(now).place < 0) {
			return storage.Result{Verdict: storage.Lost, Winner: now, Entry: i}, nil
		}
	}
	if len(c.Asserts) > 0 && c.AsOf < d.base.window.Cut {
		return storage.Result{Verdict: storage.Stale, Winner: storage.NoPosition}, nil
	}
	for _, a := range c.Asserts {
		if d.lastWrite(a.Subject) != a.At {
			return storage.Result{Verdict: storage.Stale, Winner: storage.NoPosition}, nil
		}
	}
	transitions, err := d.transitions(entries)
	if errors.Is(err, errIllegalTransition) {
		return storage.Result{Verdict: storage.Stale, Winner: storage.NoPosition}, nil
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
	d.accept(entries, transitions)
	d.Commits = append(d.Commits, mark)
	d.ids[mark.ID] = mark
	return mark.result(), nil
}

// Finish judges the outcome of an open intent.
func (d *Draft) Finish(of int64, attempt int, outcome storage.Record, writes []storage.Subject) (int64, error) {
	if outcome.Kind != storage.KindOutcome {
		return storage.NoPosition, fmt.Errorf("finish: the record is %q, not an outcome", outcome.Kind)
	}
	o, err := d.openIntent(of)
	if err != nil {
		return storage.NoPosition, err
	}
	if attempt != o.attempt {
		return storage.NoPosition, storage.ErrFinished
	}
	position := d.next()
	return position, d.append(storage.Entry{Record: outcome, Target: of, Writes: writes})
}

// Take judges a takeover and returns the attempt that begins.
func (d *Draft) Take(of int64, takeover storage.Record) (int, error) {
	if takeover.Kind != storage.KindTakeover {
		return 0, fmt.Errorf("take: the record is %q, not a takeover", takeover.Kind)
	}
	o, err := d.openIntent(of)
	if err != nil {
		return 0, err
	}
	return o.attempt + 1, d.append(storage.Entry{Record: takeover, Target: of})
}

func (d *Draft) openIntent(of int64) (intent, error) {
	o := d.intent(of)
	switch {
	case o.place == notAnIntent:
		return o, storage.ErrNotFound
	case o.place == isHeld:
		return o, storage.ErrHeld
	case o.place != isOpen:
		return o, storage.ErrFinished
	}
	return o, nil
}

// append adds a single entry about an intent that was found open.
func (d *Draft) append(e storage.Entry) error {
	entries, err := validateEntries([]storage.Entry{e}, d.next())
	if err != nil {
		return err
	}
	transitions, err := d.transitions(entries)
	if err != nil {
		return err
	}
	d.accept(entries, transitions)
	return nil
}

func (d *Draft) accept(entries []storage.Entry, transitions map[int64]intent) {
	for i, e := range entries {
		// The one place where a record gets its time for good.
		d.latest = laterOf(d.latest, e.Record.At)
		entries[i].Record.At = d.latest
		position := e.Record.Position
		if e.Take {
			d.keys[e.Key] = position
		}
		for _, s := range e.Writes {
			d.subjects[subjectDigest(s)] = position
		}
	}
	for position, o := range transitions {
		d.intents[position] = o
	}
	d.Entries = append(d.Entries, entries...)
}

// errIllegalTransition reports that an intent is no longer in the state that an entry needs.
var errIllegalTransition = errors.New("intent moved on")

// transitions applies the entries of one commit to their intents, in
// intent, without changing the draft.
func (d *Draft) transitions(entries []storage.Entry) (map[int64]intent, error) {
	transitions := make(map[int64]intent, len(entries))
	now := func(position int64) intent {
		if o, ok := transitions[position]; ok {
			return o
		}
		return d.intent(position)
	}
	first := d.next()
	for i, e := range entries {
		if e.Target != storage.NoPosition {
			if err := legal(e, entries, first, now(e.Target)); err != nil {
				return nil, fmt.Errorf("commit: entry %d: %w", i, err)
			}
		}
		if about, o, ok := after(e, e.Record.Position, now); ok {
			transitions[about] = o
		}
	}
	return transitions, nil
}

// legal checks whether an entry may follow the present state of its intent.
func legal(e storage.Entry, entries []storage.Entry, first int64, o intent) error {
	if o.place == notAnIntent {
		// An intent that took no key and is not open may still end in its own commit.
		own := e.Target >= first && e.Target < e.Record.Position && entries[e.Target-first].Record.Kind == storage.KindIntent
		if own && e.Record.Kind == storage.KindOutcome {
			return nil
		}
		return fmt.Errorf("no intent at position %d", e.Target)
	}
	ok := false
	switch e.Record.Kind {
	case storage.KindOutcome:
		ok = o.place == isOpen || o.place == isHeld
	case storage.KindRelease:
		ok = o.place == isHeld
	case storage.KindTakeover:
		ok = o.place == isOpen
	case storage.KindIntent, storage.KindControl:
	}
	if !ok {
		return errIllegalTransition
	}
	return nil
}
