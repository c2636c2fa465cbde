package state

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// State is the state after the last record that was observed. It has one writer,
// the journal's observer, and any number of readers.
type State struct {
	mu sync.RWMutex // guards everything below

	next    int64   // position after the last record
	rests   []int64 // positions of the records of administration
	last    time.Time
	touched map[storage.Subject]int64 // without what is old, as in the journal (storage.Window)
	window  storage.Window

	origin      string
	root        ed25519.PublicKey
	roles       []catalog.RoleData // that tenants begin with
	keySet      intents.KeySet
	keySetToken string
	keys        map[string]intents.Key
	policy      policy
	catalog     string
	rules       intents.Rules

	dir *Directory
	// apiKeys by hash, for a time revoked ones too; those that are not are also in their
	// tenant. keyed: there was one.
	apiKeys map[string]apiKeyRow
	keyed   bool
	// retained are the retentions of each tenant; of everyTenant, the default.
	retained map[string][]retention
	revoked  map[string]time.Time // "tenant/sub": grants issued before are dead, as long as one may live

	plans    map[string]*plan // "tenant/plan_id"
	turns    map[string]*plan // the open turn of each session, by "tenant/user/session"
	requests map[string]*plan // the last plan that each request opened, by "tenant/user/digest"
	routed   map[string]*plan // the last plan that the gate has routed in each session, by "tenant/user/session"
	open     map[string]int   // open plans by tenant
	openAll  int
	agents   map[string]*revision  // in force, by tenant
	tasks    map[string]*task      // "tenant/task_id"
	taskKID  map[string]string     // kid to "tenant/task_id"
	orders   map[int64]*openOrder  // open and held orders, by position
	unknown  map[string]*openOrder // indeterminate orders by intent_id, until order.resolve
	holds    holds                 // orders that wait for people
	settled  map[int64]string      // resolved orders by position, the latest maxSettled: done, failed
	erasures erasures              // that are not known to be carried out
	// schedules by "tenant/user/id".
	schedules map[string]catalog.Schedule
	// breakers of skill servers that failed, by "tenant/server".
	breakers     map[string]breaker
	breakerTerms intents.BreakerTerms
	onBreaker    func(Breaker)  // called for one with another status
	leaving      leaving        // closed plans whose time runs out
	sweeps       bool           // an hour has begun with the record that is folded
	used         used           // tokens of a day
	outcome      func(of int64) // called for every outcome, after it is folded
	faults       []fault        // records that could not be folded
}

// policy is the policy in force.
type policy struct {
	Digest string `json:"digest"`
	// Revision is the highest that was ever in force; 0: none had one.
	Revision int64   `json:"revision"`
	Pushed   *Pushed `json:"pushed"` // nil: it comes from a place, or is the embedded one
}

// New is the state before the first record; Observe goes on from there.
func New() *State {
	return &State{
		touched: make(map[storage.Subject]int64), keys: make(map[string]intents.Key), dir: newDirectory(),
		apiKeys: make(map[string]apiKeyRow), retained: make(map[string][]retention), revoked: make(map[string]time.Time),
		plans: make(map[string]*plan), open: make(map[string]int), turns: make(map[string]*plan), requests: make(map[string]*plan), routed: make(map[string]*plan), tasks: make(map[string]*task), taskKID: make(map[string]string),
		agents: make(map[string]*revision),
		orders: make(map[int64]*openOrder), unknown: make(map[string]*openOrder), holds: newHolds(), settled: make(map[int64]string),
		schedules: make(map[string]catalog.Schedule), breakers: make(map[string]breaker), breakerTerms: intents.DefaultBreakers,
	}
}

// Observe folds one durable record; it is the journal's storage.Observer. Records
// come in order, once. An error is remembered (Err): after a record that cannot be folded
// every later decision could be wrong.
func (s *State) Observe(e storage.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fold(e); err != nil {
		s.faults = append(s.faults, fault{e.Record.Position, err})
	}
	if e.Record.Kind == storage.KindOutcome && s.outcome != nil {
		s.outcome(e.Of)
	}
	for _, subject := range e.Touches {
		s.touched[subject] = e.Record.Position
	}
	s.next = e.Record.Position + 1
	s.passTo(e.Record.At)
	s.leave()
	if s.window.Pass(e.Record.Position, s.last) {
		s.forgetTouched()
	}
}

// forgetTouched forgets what old records touched. The map is made anew, since a map
// never gives back what it took.
func (s *State) forgetTouched() {
	recent := make(map[storage.Subject]int64)
	for subject, at := range s.touched {
		if at >= s.window.Cut {
			recent[subject] = at
		}
	}
	s.touched = recent
}

// Err is set when a record could not be folded.
func (s *State) Err() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.faults) > 0 {
		return s.faults[0]
	}
	return nil
}

// Fault is why the last record could not be folded, if it is at a position; nil: it was folded.
func (s *State) Fault(position int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := len(s.faults); n > 0 && s.faults[n-1].position == position {
		return s.faults[n-1]
	}
	return nil
}

// fault is of a record that could not be folded.
type fault struct {
	position int64
	reason   error
}

func (f fault) Error() string { return fmt.Sprintf("fold record %d: %v", f.position, f.reason) }

func (f fault) Unwrap() error { return f.reason }

func (s *State) fold(e storage.Entry) error {
	switch e.Record.Kind {
	case storage.KindControl:
		return s.foldControl(e.Record)
	case storage.KindOrder:
		return s.foldOrder(e.Record)
	case storage.KindOutcome:
		return s.foldOutcome(e)
	case storage.KindRelease:
		return s.foldRelease(e.Record)
	case storage.KindTakeover:
		return s.foldTakeover(e)
	default:
		return fmt.Errorf("unknown kind %q", e.Record.Kind)
	}
}

// foldOrder applies an order's record: allowed orders of the router have their
// effect here, at their own position; others become open or held orders.
//
// It runs in the journal's writer, and most orders are dispatched: of those, and
// of refusals, only what state keeps is read.
func (s *State) foldOrder(r storage.Record) error {
	var o Order
	if err := o.readDecision(r); err != nil || o.Decision.Verdict == intents.Deny {
		return err
	}
	dispatched := o.Decision.Verdict == intents.Allow && o.Decision.Executor != catalog.ExecutorRouter
	read := o.readBody
	if dispatched && o.Decision.Effect != string(catalog.Once) { // its arguments are not kept
		read = o.readNames
	}
	if err := read(r); err != nil {
		return err
	}
	switch {
	case !dispatched || o.Decision.Effect == string(catalog.Once):
		if err := o.readActor(r); err != nil {
			return err
		}
	case o.Type == typeSkillCall || s.ofRun(o):
		if err := o.readFacts(r); err != nil {
			return err
		}
	}
	return s.accepted(o)
}

// accepted is the effect of an order that was allowed or is held.
func (s *State) accepted(o Order) error {
	switch {
	case o.Decision.Verdict == intents.Hold:
		return s.held(o)
	case o.Decision.Executor == catalog.ExecutorRouter:
		return s.apply(o)
	default:
		s.dispatched(o)
		return nil
	}
}

// apply is the effect of an accepted order of the router.
func (s *State) apply(o Order) error {
	m, ok := moves[o.Type]
	if !ok {
		return fmt.Errorf("no move for %s", o.Type)
	}
	if m.administers {
		s.rests = append(s.rests, o.Position) // also if it cannot be applied: a changed record must be found
	}
	return m.apply(s, o)
}

// Next is the position after the last record that was folded.
func (s *State) Next() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.next
}

// Origin is the log origin; empty before the genesis.
func (s *State) Origin() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.origin
}

// JWKS publishes the key set in force.
func (s *State) JWKS() intents.JWKS {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return intents.JWKS{Origin: s.origin, Version: s.keySet.Version, Keys: slices.Clone(s.keySet.Keys), KeySet: s.keySetToken}
}

// Keys are the key set in force, by kid. They must not be changed; its successor has
// its own.
func (s *State) Keys() map[string]intents.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keys
}

// KeySetVersion is the version of the key set in force.
func (s *State) KeySetVersion() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keySet.Version
}

// CatalogDigest is the digest of the catalog in force by the record.
func (s *State) CatalogDigest() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.catalog
}

// Rests are the positions of the records that keys, users, roles and API keys come
// from, in order; the genesis is the first.
func (s *State) Rests() []int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.origin == "" {
		return nil
	}
	return append([]int64{0}, s.rests...)
}

// LastAt is the latest time of a record.
func (s *State) LastAt() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last
}

// OnOutcome sets the function that is called for every outcome. It must be called before
// orders are taken.
func (s *State) OnOutcome(fn func(of int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome = fn
}

// readPart reads one part of a record.
func readPart[T any](r storage.Record, name string) (v T, err error) {
	return v, json.Unmarshal(r.Parts[name], &v)
}
