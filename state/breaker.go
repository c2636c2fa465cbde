package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// breaker counts failed exchanges with a skill server, per tenant. Consecutive failures open it:
// intents are then accepted and refused at dispatch. After a while a round of a few intents are
// probes; one success closes it, a failure or a round without success opens it again. A closed
// breaker without failures is not stored.
type breaker struct {
	Failures int       `json:"failures"`
	Opened   time.Time `json:"opened,omitzero"` // zero: closed
	Round    int64     `json:"round,omitempty"` // position where the round's first probe was sent; 0: no round
	Began    time.Time `json:"began,omitzero"`  // time of that record
	Probes   int       `json:"probes,omitempty"`
}

// at is the breaker at a time: a round that ended without success has opened it again.
func (b breaker) at(now time.Time, t intents.BreakerTerms) breaker {
	if b.Round != 0 && !now.Before(b.Began.Add(t.Probing())) {
		return breaker{Failures: b.Failures, Opened: b.Began.Add(t.Probing())}
	}
	return b
}

// BreakerStatus is the status of a breaker at a time.
type BreakerStatus string

// Breaker statuses.
const (
	BreakerClosed   BreakerStatus = "closed"
	BreakerHalfOpen BreakerStatus = "half_open"
	BreakerOpen     BreakerStatus = "open"
)

// Breaker describes a skill server's breaker for a tenant that it has failed.
type Breaker struct {
	Tenant   string        `json:"-"`
	Server   string        `json:"server"`
	Status   BreakerStatus `json:"status"`
	Failures int           `json:"failures"`            // consecutive
	Since    time.Time     `json:"since,omitzero"`      // when it left closed
	Next     time.Time     `json:"next_probe,omitzero"` // when the server is called again; zero: now
}

// String describes the breaker for people.
func (b Breaker) String() string {
	text := fmt.Sprintf("%s has failed %d times in a row", b.Server, b.Failures)
	switch {
	case b.Status == BreakerClosed:
	case b.Next.IsZero():
		text += ": since " + clockOf(b.Since) + " it was not called, and the next call tries it again"
	default:
		text += ": since " + clockOf(b.Since) + " it is not called, and it is tried again from " + clockOf(b.Next) + " on"
	}
	return text
}

func clockOf(t time.Time) string { return t.UTC().Format("15:04:05 MST") }

// SubjectBreaker is a breaker, as far as it determines which intents may be sent.
func SubjectBreaker(name string) storage.Subject { return storage.Subject("breaker/" + name) }

// BreakerName is the breaker of an intent that calls a skill: its tenant and the server of the
// skill's id. It is empty if no breaker applies.
func (o *Intent) BreakerName() string {
	if o.Type != typeSkillCall || o.Skill == "" {
		return ""
	}
	server, _, _ := strings.Cut(o.Skill, ".")
	return o.Tenant + "/" + server
}

// BreakerTerms in force.
func (s *State) BreakerTerms() intents.BreakerTerms {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.breakerTerms
}

// breakerMark determines how an intent may go to a server now. ahead counts the probes that are
// accepted with it and before it. The lock is held.
func (s *State) breakerMark(name string, now time.Time, ahead int) intents.BreakerMark {
	b, there := s.breakers[name]
	if !there || b.Opened.IsZero() {
		return intents.BreakerPasses
	}
	b = b.at(now, s.breakerTerms)
	if b.Round == 0 && now.Before(b.Opened.Add(s.breakerTerms.Reset())) || b.Probes+ahead >= s.breakerTerms.Probes {
		return intents.BreakerRefuses
	}
	return intents.BreakerProbes
}

// breakerOpen reports whether a call of a tenant to a server would be refused now. The lock is
// held.
func (s *State) breakerOpen(tenant, server string, now time.Time) bool {
	return s.breakerMark(tenant+"/"+server, now, 0) == intents.BreakerRefuses
}

// Breaker determines how an intent may go to its skill server at the time of its decision. ahead
// counts the earlier intents of its batch that go to the same server as probes.
func (v *View) Breaker(o *Intent, ahead int) intents.BreakerMark {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	name := o.BreakerName()
	if name == "" {
		return intents.BreakerPasses
	}
	v.addRead(SubjectBreaker(name))
	return v.s.breakerMark(name, o.Now, ahead)
}

// BreakerWrites lists what the commit of a probe changes (out is nil), and the outcome of a
// probe or of a failed call. Other successes change nothing that intents read.
func (o *Intent) BreakerWrites(out *intents.Outcome) []storage.Subject {
	name := o.BreakerName()
	if name == "" || o.Breaker != intents.BreakerProbes && (out == nil || out.Transport == nil || !out.Transport.Failure) {
		return nil
	}
	return []storage.Subject{SubjectBreaker(name)}
}

// sent records where an accepted intent was sent, and counts it if it is a probe.
func (s *State) sent(x *openIntent, o Intent) {
	x.Breaker = o.BreakerName()
	b, there := s.breakers[x.Breaker]
	if o.Breaker != intents.BreakerProbes || !there || b.Opened.IsZero() {
		return
	}
	b = b.at(o.Now, s.breakerTerms)
	begins := b.Round == 0
	if begins {
		b.Round, b.Began = o.Position, o.At
	}
	b.Probes++
	x.Round = b.Round
	s.setBreaker(x.Breaker, b, o.At, begins)
}

// answered counts the result of an exchange. While the breaker is not closed, only the probes of
// its round count, and only until the round ends.
func (s *State) answered(x *openIntent, t *intents.Transport, at time.Time) {
	if x.Breaker == "" || t == nil || s.breakerTerms.Failures == 0 {
		return
	}
	b := s.breakers[x.Breaker]
	if !b.Opened.IsZero() {
		if b = b.at(at, s.breakerTerms); b.Round == 0 || b.Round != x.Round {
			return
		}
	}
	if !t.Failure {
		s.setBreaker(x.Breaker, breaker{}, at, b.Round != 0)
		return
	}
	opens := b.Round != 0 || b.Failures+1 >= s.breakerTerms.Failures
	if b = (breaker{Failures: b.Failures + 1}); opens {
		b.Opened = at
	}
	s.setBreaker(x.Breaker, b, at, opens)
}

// setBreaker stores a breaker; newStatus: its status has changed.
func (s *State) setBreaker(name string, b breaker, at time.Time, newStatus bool) {
	s.breakers[name] = b
	if b == (breaker{}) {
		delete(s.breakers, name)
	}
	if newStatus && s.onBreaker != nil {
		s.onBreaker(s.shownBreaker(name, at))
	}
}

// shownBreaker describes a breaker at a time.
func (s *State) shownBreaker(name string, now time.Time) Breaker {
	tenant, server, _ := strings.Cut(name, "/")
	b, t := s.breakers[name].at(now, s.breakerTerms), s.breakerTerms
	out := Breaker{Tenant: tenant, Server: server, Status: BreakerClosed, Failures: b.Failures}
	if b.Opened.IsZero() {
		return out
	}
	out.Status, out.Since, out.Next = BreakerHalfOpen, b.Opened, b.Opened.Add(t.Reset())
	if b.Round != 0 {
		out.Next = b.Began.Add(t.Probing() + t.Reset())
	}
	if !s.breakerOpen(tenant, server, now) {
		out.Next = time.Time{}
	} else if b.Round == 0 {
		out.Status = BreakerOpen
	}
	return out
}

// Breakers lists the breakers of a tenant, or of all (empty), that are not closed or count
// failures, sorted. No decision may read it.
func (s *State) Breakers(tenant string, now time.Time) []Breaker {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []Breaker{}
	for name := range s.breakers {
		if b := s.shownBreaker(name, now); tenant == "" || b.Tenant == tenant {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b Breaker) int { return strings.Compare(a.Tenant+"/"+a.Server, b.Tenant+"/"+b.Server) })
	return out
}

// OnBreaker sets the function that is called for every breaker whose status changed, after the
// change is applied. Set it before intents are accepted.
func (s *State) OnBreaker(fn func(Breaker)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onBreaker = fn
}
