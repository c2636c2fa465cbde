package breakers

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/internal/durable"
)

// server is a skill server or remote agent as a tenant calls it.
type server struct{ tenant, name string }

// Set has the breakers of all tenants. It is safe for concurrent use.
type Set struct {
	terms   Terms
	store   durable.Store // nil: the breakers end with the process
	now     func() time.Time
	log     *slog.Logger
	changed func(Breaker) // called for each new status

	mu     sync.Mutex // guards the fields below
	by     map[server]breaker
	rounds int64 // begun so far
	dirty  bool  // something is not stored

	saving sync.Mutex // one write at a time, so that the newest is the last
}

// New makes a set in which all breakers are closed; see Load. changed is called for each breaker
// that has another status.
func New(terms Terms, store durable.Store, now func() time.Time, log *slog.Logger, changed func(Breaker)) *Set {
	return &Set{terms: terms, store: store, now: now, log: log, changed: changed, by: make(map[server]breaker)}
}

// Load takes the breakers that were stored last. The probes of an earlier process are unknown: a
// breaker that was not closed is open, and probes before it closes.
func (s *Set) Load(ctx context.Context) error {
	stored, err := Read(ctx, s.store)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range stored {
		if s.terms.Failures == 0 {
			s.dirty = true // there are none any more
			continue
		}
		s.by[server{b.Tenant, b.Server}] = breaker{failures: b.Failures, opened: b.Since}
	}
	return nil
}

// Ask asks for leave to call a server. refused describes the breaker if there is none. Otherwise
// probe is the round in which the call is a probe, for Report; 0: it is no probe. A call that is not
// made after all is given back with Return.
func (s *Set) Ask(ctx context.Context, tenant, name string) (probe int64, refused *Breaker) {
	of := server{tenant, name}
	s.update(ctx, of, func(b breaker, now time.Time) (_ breaker, newStatus bool) {
		switch {
		case b.opened.IsZero():
			return b, false
		case b.refuses(now, s.terms):
			refused = new(b.describe(of, now, s.terms))
			return b, false
		}
		begins := b.round == 0
		if begins {
			s.rounds++
			b.round, b.began = s.rounds, now
		}
		b.probes++
		probe = b.round
		return b, begins
	})
	return probe, refused
}

// Return gives back a probe that was not sent.
func (s *Set) Return(tenant, name string, probe int64) {
	of := server{tenant, name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.by[of]; probe != 0 && b.round == probe {
		b.probes--
		s.by[of] = b
	}
}

// Report counts the result of an exchange. While the breaker is not closed only the probes of its
// round count, and only until the round ends. A new status is stored when Report returns.
func (s *Set) Report(ctx context.Context, tenant, name string, probe int64, failed bool) {
	s.update(ctx, server{tenant, name}, func(b breaker, now time.Time) (_ breaker, newStatus bool) {
		open := !b.opened.IsZero()
		switch {
		case s.terms.Failures == 0, open && (b.round == 0 || b.round != probe):
			return b, false
		case !failed:
			return breaker{}, open
		}
		opens := open || b.failures+1 >= s.terms.Failures
		b = breaker{failures: b.failures + 1}
		if opens {
			b.opened = now
		}
		return b, opens
	})
}

// update replaces a breaker. A new status is stored at once and reported; a new count is stored by
// Sync. A closed breaker without failures is not kept.
func (s *Set) update(ctx context.Context, of server, next func(b breaker, now time.Time) (_ breaker, newStatus bool)) {
	now := s.now()
	s.mu.Lock()
	before := s.by[of]
	b, newStatus := next(before.at(now, s.terms), now)
	if s.by[of] = b; b == (breaker{}) {
		delete(s.by, of)
	}
	s.dirty = s.dirty || b != before
	s.mu.Unlock()
	if newStatus {
		s.save(ctx)
		s.changed(b.describe(of, now, s.terms))
	}
}

// Open lists the servers that a call of a tenant would not reach now.
func (s *Set) Open(tenant string) (names []string) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, b := range s.by {
		if of.tenant == tenant && b.at(now, s.terms).refuses(now, s.terms) {
			names = append(names, of.name)
		}
	}
	return names
}

// List describes the breakers of a tenant, or of all (empty), that are not closed or count
// failures, sorted.
func (s *Set) List(tenant string) []Breaker {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Breaker{}
	for of, b := range s.by {
		if tenant == "" || of.tenant == tenant {
			out = append(out, b.describe(of, now, s.terms))
		}
	}
	slices.SortFunc(out, func(a, b Breaker) int { return strings.Compare(a.Tenant+"/"+a.Server, b.Tenant+"/"+b.Server) })
	return out
}
