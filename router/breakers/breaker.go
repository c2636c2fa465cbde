// Package breakers decides whether a skill server that has failed is called. Each tenant has a
// breaker for each server, and remote agents are servers, too. Breakers are values of the router that
// decides: no record has them, and nobody judges again what they refuse.
package breakers

import (
	"fmt"
	"time"
)

// Terms determine when breakers open and close.
type Terms struct {
	Failures int           // in a row that open one; 0: there are no breakers
	Reset    time.Duration // that an open one refuses all
	Probes   int           // calls that may be sent then
	Probing  time.Duration // within which one of them has to succeed
	Sync     time.Duration // between two writes of counts
}

// Defaults are the usual terms.
var Defaults = Terms{Failures: 5, Reset: 30 * time.Second, Probes: 3, Probing: time.Minute, Sync: 5 * time.Second}

// breaker counts failed exchanges with a server. Consecutive failures open it, and calls are
// refused. After a while a round of a few calls are probes: one success closes it, a failure or a
// round without success opens it again.
type breaker struct {
	failures int
	opened   time.Time // zero: closed
	round    int64     // 0: no round
	began    time.Time // of the round
	probes   int
}

// at is the breaker at a time: a round that ended without success has opened it again.
func (b breaker) at(now time.Time, t Terms) breaker {
	if end := b.began.Add(t.Probing); b.round != 0 && !now.Before(end) {
		return breaker{failures: b.failures, opened: end}
	}
	return b
}

// refuses reports whether the breaker, as it is at this time, lets no call through.
func (b breaker) refuses(now time.Time, t Terms) bool {
	return !b.opened.IsZero() && (b.round == 0 && now.Before(b.opened.Add(t.Reset)) || b.probes >= t.Probes)
}

// Status is the status of a breaker at a time.
type Status string

// Statuses.
const (
	Closed   Status = "closed"
	HalfOpen Status = "half_open"
	Open     Status = "open"
)

// Breaker describes the breaker of a server that has failed for a tenant. It is also the form in
// which breakers are stored.
type Breaker struct {
	Tenant   string    `json:"tenant"`
	Server   string    `json:"server"`
	Status   Status    `json:"status"`
	Failures int       `json:"failures"`            // consecutive
	Since    time.Time `json:"since,omitzero"`      // when it left closed
	Next     time.Time `json:"next_probe,omitzero"` // when the server is called again; zero: now
}

// String describes the breaker for people.
func (b Breaker) String() string {
	text := fmt.Sprintf("%s has failed %d times in a row", b.Server, b.Failures)
	switch {
	case b.Status == Closed:
	case b.Next.IsZero():
		text += ": since " + clockOf(b.Since) + " it was not called, and the next call tries it again"
	default:
		text += ": since " + clockOf(b.Since) + " it is not called, and it is tried again from " + clockOf(b.Next) + " on"
	}
	return text
}

func clockOf(t time.Time) string { return t.UTC().Format("15:04:05 MST") }

// describe describes a breaker at a time.
func (b breaker) describe(of server, now time.Time, t Terms) Breaker {
	b = b.at(now, t)
	out := Breaker{Tenant: of.tenant, Server: of.name, Status: Closed, Failures: b.failures}
	if b.opened.IsZero() {
		return out
	}
	out.Status, out.Since = HalfOpen, b.opened
	switch {
	case !b.refuses(now, t):
	case b.round == 0:
		out.Status, out.Next = Open, b.opened.Add(t.Reset)
	default: // all probes are under way
		out.Next = b.began.Add(t.Probing + t.Reset)
	}
	return out
}
