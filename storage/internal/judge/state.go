// Package judge decides what a journal takes. A State is the fold of what is durable:
// who holds which key, where each order is, what touched a subject last. A Draft above
// it judges a group of calls, each against the state and against those before it. Both
// are pure: whoever keeps records writes what a draft has accepted, and applies it
// once it is durable. Not safe for concurrent use.
package judge

import (
	"crypto/sha256"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// Where an order is. Every other value is the position of its outcome.
const (
	notAnOrder int64 = -1
	isOpen     int64 = -2
	isHeld     int64 = -3
	isRefused  int64 = -4
	hasLeft    int64 = -5 // it ended long ago, or no order is there
)

// order is what the journal knows about one order.
type order struct {
	place   int64 // one of the above, or the position of the outcome
	attempt int
}

func (o order) holder(position int64) storage.Holder {
	h := storage.Holder{Position: position, Outcome: storage.Nobody}
	switch o.place {
	case isOpen:
		h.State = storage.StateOpen
	case isHeld, isRefused:
		h.State = storage.StateHeld
	default:
		h.State, h.Outcome = storage.StateDone, o.place
	}
	return h
}

// digest stands for a subject: it keeps the map free of pointers, which the
// garbage collector would otherwise follow by the million.
type digest [16]byte

func subjectDigest(s storage.Subject) digest {
	sum := sha256.Sum256([]byte(s))
	return digest(sum[:16])
}

// chunk is how many places are allocated at a time: growing never copies what is there.
const chunk = 1 << 16

// State is the fold of the durable records that commits are judged by. It
// holds nothing that is not on disk; what a group is about to write is in its Draft.
//
// What is old (storage.Window) leaves it: subjects, and orders with their keys that
// have ended, and not as indeterminate.
type State struct {
	next     int64
	latest   time.Time // no record is timed after it, and none before what comes next
	window   storage.Window
	keys     map[storage.Key]int64
	subjects map[digest]int64
	places   [][]int64       // by position, in chunks; nil: all of it is old
	stay     map[int64]int64 // places of orders that are old and do not leave
	open     map[int64]int   // open orders with their attempt
	unknown  map[int64]bool  // orders that ended as indeterminate
	recent   *recent
}

// NewState of no records.
func NewState() *State {
	return &State{
		keys:     make(map[storage.Key]int64),
		subjects: make(map[digest]int64),
		stay:     make(map[int64]int64),
		open:     make(map[int64]int),
		unknown:  make(map[int64]bool),
		recent:   newRecent(),
	}
}

func (s *State) holder(k storage.Key) int64 {
	if p, ok := s.keys[k]; ok {
		return p
	}
	return storage.Nobody
}

// Next is the position that the next record will have.
func (s *State) Next() int64 { return s.next }

// Lookup says who holds a key, if anybody does.
func (s *State) Lookup(k storage.Key) (storage.Holder, bool) {
	p := s.holder(k)
	if p == storage.Nobody {
		return storage.Holder{Position: storage.Nobody, Outcome: storage.Nobody}, false
	}
	return s.order(p).holder(p), true
}

// Holder says in which state an order is; ErrNotFound where the position is no order's.
// left: it is in the records only (storage.HolderOf).
func (s *State) Holder(position int64) (h storage.Holder, left bool, err error) {
	o := s.order(position)
	switch o.place {
	case notAnOrder:
		return h, false, storage.ErrNotFound
	case hasLeft:
		return h, true, nil
	default:
		return o.holder(position), false, nil
	}
}

// Remember a commit that is durable, so that it wins again.
func (s *State) Remember(c Committed) { s.recent.add(c) }

func (s *State) order(position int64) order {
	if position < 0 || position >= s.next {
		return order{place: notAnOrder}
	}
	o := order{place: s.place(position), attempt: 1}
	if o.place == isOpen {
		o.attempt = s.open[position]
	}
	return o
}

func (s *State) place(position int64) int64 {
	if position >= s.window.Cut {
		return s.places[position/chunk][position%chunk]
	}
	if place, stays := s.stay[position]; stays {
		return place
	}
	return hasLeft
}

func (s *State) setOrder(position int64, o order) {
	if position >= s.window.Cut {
		s.places[position/chunk][position%chunk] = o.place
	} else {
		s.stay[position] = o.place // and leaves once its end is old
	}
	if o.place == isOpen {
		s.open[position] = o.attempt
	} else {
		delete(s.open, position)
	}
}

// Apply folds the next durable entry in.
func (s *State) Apply(e storage.Entry) {
	if s.next%chunk == 0 {
		s.places = append(s.places, make([]int64, chunk))
	}
	position := s.next
	s.next++
	s.latest = later(s.latest, e.Record.At)
	s.places[position/chunk][position%chunk] = notAnOrder
	if e.Take {
		s.keys[e.Key] = position
	}
	for _, t := range e.Touches {
		s.subjects[subjectDigest(t)] = position
	}
	if about, o, ok := after(e, position, s.order); ok {
		s.setOrder(about, o)
	}
	if e.Record.Kind == storage.KindOutcome && !storage.Settled(e.Record) {
		s.unknown[e.Of] = true
	}
	if from := s.window.Cut; s.window.Pass(position, s.latest) {
		s.leave(from)
	}
}

// leave removes what is old. from is where the window was cut before. The maps are
// copied, since a map never frees its memory.
func (s *State) leave(from int64) {
	cut := s.window.Cut
	stay := make(map[int64]int64)
	stays := func(position, place int64) {
		ended := place == isRefused || place >= 0 && place < cut && !s.unknown[position]
		if place != notAnOrder && !ended {
			stay[position] = place
		}
	}
	for position, place := range s.stay {
		stays(position, place)
	}
	for position := from; position < cut; position++ {
		stays(position, s.places[position/chunk][position%chunk])
	}
	s.stay = stay
	for i := range cut / chunk {
		s.places[i] = nil
	}
	s.keys = kept(s.keys, func(at int64) bool { _, stays := stay[at]; return stays || at >= cut })
	s.subjects = kept(s.subjects, func(at int64) bool { return at >= cut })
}

func kept[K comparable](all map[K]int64, is func(position int64) bool) map[K]int64 {
	some := make(map[K]int64)
	for k, at := range all {
		if is(at) {
			some[k] = at
		}
	}
	return some
}

// later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// OpenOrders lists the open orders by position.
func (s *State) OpenOrders() []storage.OpenOrder {
	list := make([]storage.OpenOrder, 0, len(s.open))
	for position, attempt := range s.open {
		list = append(list, storage.OpenOrder{Position: position, Attempt: attempt})
	}
	slices.SortFunc(list, func(a, b storage.OpenOrder) int { return int(a.Position - b.Position) })
	return list
}

// after says what an entry at a position does to an order: which one, and how it
// is afterwards. ok is false where the entry is about no order. The entry is one
// that was accepted.
func after(e storage.Entry, position int64, now func(int64) order) (about int64, o order, ok bool) {
	switch e.Record.Kind {
	case storage.KindOrder:
		switch {
		case e.Open:
			return position, order{place: isOpen, attempt: 1}, true
		case e.Refused:
			return position, order{place: isRefused, attempt: 1}, true
		case e.Take:
			// Held, unless the next entry of the commit is its outcome.
			return position, order{place: isHeld, attempt: 1}, true
		}
		return 0, order{}, false
	case storage.KindOutcome:
		return e.Of, order{place: position, attempt: now(e.Of).attempt}, true
	case storage.KindRelease:
		return e.Of, order{place: isOpen, attempt: 1}, true
	case storage.KindTakeover:
		return e.Of, order{place: isOpen, attempt: now(e.Of).attempt + 1}, true
	default:
		return 0, order{}, false
	}
}
