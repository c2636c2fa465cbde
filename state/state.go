package state

import (
	"cmp"
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

	next       int64   // position after the last record
	rests      []int64 // positions of the records of administration
	last       time.Time
	lastWrites map[storage.Subject]int64 // without old writes, as in the journal (storage.Window)
	window     storage.Window

	origin      string
	root        ed25519.PublicKey
	roles       []catalog.RoleData // initial roles of tenants
	keySet      intents.KeySet
	keySetToken string
	keys        map[string]intents.Key
	policy      policy
	catalog     string

	dir *Directory
	// apiKeys by hash, including revoked ones for a time; unrevoked ones are also in their
	// tenant. keyed: there was one.
	apiKeys map[string]apiKeyRow
	keyed   bool
	// retained are the retentions of each tenant; for everyTenant, the default.
	retained map[string][]retention
	revoked  map[string]time.Time // "tenant/sub": grants issued before are invalid, for as long as one may live

	plans    map[string]*plan       // "tenant/plan_id"
	turns    map[string]*plan       // the open turn of each session, by "tenant/user/session"
	requests map[string]*plan       // the last plan that each request opened, by "tenant/user/digest"
	routed   map[string]*plan       // the last plan that was routed in each session, by "tenant/user/session"
	open     map[*plan]bool         // those of plans that have not ended
	opened   map[string]int         // their number by tenant
	agents   map[string]*revision   // in force, by tenant
	tasks    map[string]*task       // "tenant/task_id"
	taskKID  map[string]string      // kid to "tenant/task_id"
	intents  map[int64]*openIntent  // open and held intents, by position
	unknown  map[string]*openIntent // indeterminate intents by intent_id, until intent.resolve
	holds    holds                  // intents pending approval
	resolved map[int64]string       // resolved intents by position, the latest maxResolved: done, failed
	erasures erasures               // those that are not known to be carried out, or are missing
	// transient are the ended ones that are not known to be destroyed, oldest first.
	transient []endedTransient
	// schedules by "tenant/user/id".
	schedules map[string]catalog.Schedule
	// artifacts and sessions that plans have written lately.
	artifacts, sessions map[string]labelled
	leaving             leaving        // closed plans that are about to leave
	sweeps              bool           // the record that is applied begins a new hour
	dayUsage            dayUsage       // tokens of a day
	outcome             func(of int64) // called for every outcome, after it is applied
	faults              []fault        // records that could not be applied
}

// policy is the policy in force.
type policy struct {
	Digest string `json:"digest"`
	// Revision is the highest that was ever in force; 0 if none had one.
	Revision     int64         `json:"revision"`
	PushedPolicy *PushedPolicy `json:"pushed"` // nil: it comes from a place, or is the embedded one
}

// New is the state before the first record; Observe continues from there.
func New() *State {
	return &State{
		lastWrites: make(map[storage.Subject]int64), keys: make(map[string]intents.Key), dir: newDirectory(),
		apiKeys: make(map[string]apiKeyRow), retained: make(map[string][]retention), revoked: make(map[string]time.Time),
		plans: make(map[string]*plan), open: make(map[*plan]bool), opened: make(map[string]int), turns: make(map[string]*plan), requests: make(map[string]*plan), routed: make(map[string]*plan), tasks: make(map[string]*task), taskKID: make(map[string]string),
		agents:  make(map[string]*revision),
		intents: make(map[int64]*openIntent), unknown: make(map[string]*openIntent), holds: newHolds(), resolved: make(map[int64]string),
		schedules: make(map[string]catalog.Schedule), artifacts: make(map[string]labelled), sessions: make(map[string]labelled), erasures: erasures{unexplained: make(map[int64]lostParts)},
	}
}

// Observe applies one durable record; it is the journal's storage.Observer. Records come in
// order, once. An error is retained (Err): after a record that cannot be applied every later
// decision could be wrong.
func (s *State) Observe(e storage.Entry) { s.ObserveRead(e, nil) }

// ObserveRead is Observe for an entry whose record ReadIntent has already read; nil if nothing
// has.
func (s *State) ObserveRead(e storage.Entry, read *Intent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing(e)
	if err := s.applyEntry(e, read); err != nil {
		s.faults = append(s.faults, fault{e.Record.Position, err})
	}
	if e.Record.Kind == storage.KindOutcome && s.outcome != nil {
		s.outcome(e.Target)
	}
	for _, subject := range e.Writes {
		s.lastWrites[subject] = e.Record.Position
	}
	s.next = e.Record.Position + 1
	s.passTo(e.Record.At)
	s.leave()
	if s.window.Pass(e.Record.Position, s.last) {
		s.forgetOldWrites()
	}
}

// forgetOldWrites removes the writes of old records. The map is rebuilt, since a map never frees
// its memory.
func (s *State) forgetOldWrites() {
	recent := make(map[storage.Subject]int64)
	for subject, at := range s.lastWrites {
		if at >= s.window.Cut {
			recent[subject] = at
		}
	}
	s.lastWrites = recent
}

// Err is set when a record could not be applied.
func (s *State) Err() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.faults) > 0 {
		return s.faults[0]
	}
	return nil
}

// Fault explains why the last record could not be applied, if it is at a position; nil if it was
// applied.
func (s *State) Fault(position int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := len(s.faults); n > 0 && s.faults[n-1].position == position {
		return s.faults[n-1]
	}
	return nil
}

// fault describes a record that could not be applied.
type fault struct {
	position int64
	reason   error
}

func (f fault) Error() string { return fmt.Sprintf("fold record %d: %v", f.position, f.reason) }

func (f fault) Unwrap() error { return f.reason }

func (s *State) applyEntry(e storage.Entry, read *Intent) error {
	switch e.Record.Kind {
	case storage.KindControl:
		return s.applyControl(e.Record)
	case storage.KindIntent:
		return s.applyIntent(e, read)
	case storage.KindOutcome:
		return s.applyOutcome(e)
	case storage.KindRelease:
		return s.applyRelease(e.Record)
	case storage.KindTakeover:
		return s.applyTakeover(e)
	default:
		return fmt.Errorf("unknown kind %q", e.Record.Kind)
	}
}

// applyIntent applies an intent's record: allowed intents of the router take effect here, at
// their own position; others become open or held intents.
//
// It runs in the journal's writer, and most intents are dispatched: of those, and of refusals,
// only what state retains is read.
//
// whole is the intent, if ReadIntent has read it.
func (s *State) applyIntent(e storage.Entry, whole *Intent) error {
	var o Intent
	r := e.Record
	if err := o.readDecision(e); err != nil || o.Decision.Verdict == intents.Deny {
		return err
	}
	dispatched := o.Decision.Verdict == intents.Allow && o.Decision.Executor != catalog.ExecutorRouter
	if !dispatched || o.Decision.Effect == string(catalog.Once) {
		if whole != nil {
			return s.accepted(*whole)
		}
		if err := cmp.Or(o.readBody(r), o.readActor(r)); err != nil {
			return err
		}
		if _, there := r.Parts[storage.PartSummary]; !there && (dispatched || RetainsArgs(o.Type)) {
			return errOlder
		}
		return s.accepted(o)
	}
	if err := o.readNames(e); err != nil { // its arguments are not retained
		return err
	}
	if s.ofRun(o) || s.mayUseStanding(o) {
		if err := o.readInputs(r); err != nil {
			return err
		}
	}
	return s.accepted(o)
}

// accepted applies an intent that was allowed or is held.
func (s *State) accepted(o Intent) error {
	switch {
	case o.Decision.Verdict == intents.Hold:
		return s.held(o)
	case o.Decision.Executor == catalog.ExecutorRouter:
		return s.apply(o)
	default:
		s.useStanding(o)
		s.dispatched(o)
		return nil
	}
}

// apply applies an accepted intent of the router.
func (s *State) apply(o Intent) error {
	m, ok := transitions[o.Type]
	if !ok {
		return fmt.Errorf("no move for %s", o.Type)
	}
	if m.administers {
		s.rests = append(s.rests, o.Position) // even if it cannot be applied: a changed record must be found
	}
	return m.apply(s, o)
}

// Next is the position after the last record that was applied.
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

// Keys are the key set in force, by kid. Do not modify them; the next key set has a map of its
// own.
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

// CatalogDigest is the digest of the catalog in force according to the record.
func (s *State) CatalogDigest() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.catalog
}

// Rests are the positions of the records that define keys, users, roles and API keys, in order;
// the genesis is the first.
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

// OnOutcome sets the function that is called for every outcome. Set it before intents are
// accepted.
func (s *State) OnOutcome(fn func(of int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome = fn
}

// readPart reads one part of a record.
func readPart[T any](r storage.Record, name string) (v T, err error) {
	return v, json.Unmarshal(r.Parts[name], &v)
}
