// Package judge decides what a journal accepts. A State is built from the durable records:
// the holder of each key, the state of each intent, the last write of each subject. A Draft above
// it judges a group of calls, each against the state and against those before it. Both
// are pure: the keeper of records writes what a draft has accepted, and applies it
// once it is durable. Not safe for concurrent use.
package judge

import (
	"crypto/sha256"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// Places of an intent. Every other value is the position of its outcome.
const (
	notAnIntent int64 = -1
	isOpen      int64 = -2
	isHeld      int64 = -3
	isRefused   int64 = -4
	hasLeft     int64 = -5 // it ended long ago, or no intent is there
)

// intent is what the journal knows about one intent.
type intent struct {
	place   int64 // one of the above, or the position of the outcome
	attempt int
}

func (o intent) holder(position int64) storage.Holder {
	h := storage.Holder{Position: position, Outcome: storage.NoPosition}
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

// digest represents a subject: it keeps the map free of pointers, which the
// garbage collector would otherwise follow by the million.
type digest [16]byte

func subjectDigest(s storage.Subject) digest {
	sum := sha256.Sum256([]byte(s))
	return digest(sum[:16])
}

// chunk is how many places are allocated at a time: growing never copies existing ones.
const chunk = 1 << 16

// State is built from the durable records; commits are judged by it. It
// contains nothing that is not on disk; the pending writes of a group are in its Draft.
//
// It drops what is old (storage.Window): subjects, and intents with their keys that
// have ended, and not as indeterminate.
type State struct {
	next     int64
	latest   time.Time // no record is timed after it, and none before what comes next
	window   storage.Window
	keys     map[storage.Key]int64
	subjects map[digest]int64
	places   [][]int64       // by position, in chunks; nil: all of it is old
	stay     map[int64]int64 // places of intents that are old and are not dropped
	open     map[int64]int   // open intents with their attempt
	unknown  map[int64]bool  // intents that ended as indeterminate
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
	return storage.NoPosition
}

// Next is the position that the next record will have.
func (s *State) Next() int64 { return s.next }

// Lookup returns the holder of a key, if there is one.
func (s *State) Lookup(k storage.Key) (storage.Holder, bool) {
	p := s.holder(k)
	if p == storage.NoPosition {
		return storage.Holder{Position: storage.NoPosition, Outcome: storage.NoPosition}, false
	}
	return s.intent(p).holder(p), true
}

// Holder returns the state of an intent; ErrNotFound if the position is no intent's.
// left: it is in the records only (storage.HolderOf).
func (s *State) Holder(position int64) (h storage.Holder, left bool, err error) {
	o := s.intent(position)
	switch o.place {
	case notAnIntent:
		return h, false, storage.ErrNotFound
	case hasLeft:
		return h, true, nil
	default:
		return o.holder(position), false, nil
	}
}

// Remember a commit that is durable, so that it wins again.
func (s *State) Remember(c Committed) { s.recent.add(c) }

func (s *State) intent(position int64) intent {
	if position < 0 || position >= s.next {
		return intent{place: notAnIntent}
	}
	o := intent{place: s.place(position), attempt: 1}
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

func (s *State) setIntent(position int64, o intent) {
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

// Apply applies the next durable entry.
func (s *State) Apply(e storage.Entry) {
	if s.next%chunk == 0 {
		s.places = append(s.places, make([]int64, chunk))
	}
	position := s.next
	s.next++
	s.latest = laterOf(s.latest, e.Record.At)
	s.places[position/chunk][position%chunk] = notAnIntent
	if e.Take {
		s.keys[e.Key] = position
	}
	for _, t := range e.Writes {
		s.subjects[subjectDigest(t)] = position
	}
	if about, o, ok := after(e, position, s.intent); ok {
		s.setIntent(about, o)
	}
	if e.Record.Kind == storage.KindOutcome && !storage.Determinate(e.Record) {
		s.unknown[e.Target] = true
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
		if place != notAnIntent && !ended {
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

// laterOf of two times.
func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// OpenIntents lists the open intents by position.
func (s *State) OpenIntents() []storage.OpenIntent {
	list := make([]storage.OpenIntent, 0, len(s.open))
	for position, attempt := range s.open {
		list = append(list, storage.OpenIntent{Position: position, Attempt: attempt})
	}
	slices.SortFunc(list, func(a, b storage.OpenIntent) int { return int(a.Position - b.Position) })
	return list
}

// after returns the effect of an entry at a position on an intent: which one, and its
// state afterwards. ok is false if the entry is about no intent. The entry is one
// that was accepted.
func after(e storage.Entry, position int64, now func(int64) intent) (about int64, o intent, ok bool) {
	switch e.Record.Kind {
	case storage.KindIntent:
		switch {
		case e.Open:
			return position, intent{place: isOpen, attempt: 1}, true
		case e.Refused:
			return position, intent{place: isRefused, attempt: 1}, true
		case e.Take:
			// Held, unless the next entry of the commit is its outcome.
			return position, intent{place: isHeld, attempt: 1}, true
		}
		return 0, intent{}, false
	case storage.KindOutcome:
		return e.Target, intent{place: position, attempt: now(e.Target).attempt}, true
	case storage.KindRelease:
		return e.Target, intent{place: isOpen, attempt: 1}, true
	case storage.KindTakeover:
		return e.Target, intent{place: isOpen, attempt: now(e.Target).attempt + 1}, true
	default:
		return 0, intent{}, false
	}
}
