package router

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/state"
)

// skillServer is the server of the approved skill that an intent calls; empty: it calls none. A
// remote agent is a server, too.
func (d *decision) skillServer() string {
	if d.pin == nil || !state.AsksServer(d.env.Type()) {
		return ""
	}
	name, _, _ := strings.Cut(d.pin.Skill, ".")
	return name
}

// askBreaker asks before the commit whether the skill server of an intent may be called; nil: it
// may. before are the intents of its batch that run earlier: the calls of a batch to one server are
// one probe, since the first that fails ends the batch.
//
// Crash after it: a probe that was allowed is forgotten with its round.
func (r *Router) askBreaker(ctx context.Context, x *execution, before []*execution) *intents.Refusal {
	name := x.skillServer()
	if name == "" || !x.dispatched() || slices.ContainsFunc(before, func(b *execution) bool { return b.skillServer() == name }) {
		return nil
	}
	probe, refused := r.breakers.Ask(ctx, x.env.Principal().Tenant, name)
	if x.probe = probe; refused == nil {
		return nil
	}
	why := intents.Refuse(intents.DispatchUnavailable, "", "nothing was sent, since the skill server fails: "+refused.String())
	why.RetryAfter = max(time.Second, refused.Next.Sub(x.now))
	return why
}

// returnProbe gives back the probe of an intent that was not accepted.
func (r *Router) returnProbe(x *execution) {
	if x.probe != 0 {
		r.breakers.Return(x.env.Principal().Tenant, x.skillServer(), x.probe)
		x.probe = 0
	}
}

// exchanged counts how the exchange with the skill server of an intent went; nil: that is not known.
func (r *Router) exchanged(ctx context.Context, x *execution, t *intents.Transport) {
	if t != nil {
		r.breakers.Report(ctx, x.env.Principal().Tenant, x.skillServer(), x.probe, t.Failure)
	}
}

// breakerChanged counts and logs a breaker's new status.
func (r *Router) breakerChanged(b breakers.Breaker) {
	r.metrics.mu.Lock()
	count(&r.metrics.breakers, b.Status, 1)
	r.metrics.mu.Unlock()
	log := r.cfg.Log.With(slog.String("server", b.Server), slog.String("tenant", b.Tenant))
	switch b.Status {
	case breakers.Open:
		log.Warn("a skill server has failed too often: it is not called for now", slog.Int("failures", b.Failures), slog.Time("since", b.Since), slog.Time("next_probe", b.Next))
	case breakers.HalfOpen:
		log.Info("a skill server that failed is tried again")
	case breakers.Closed:
		log.Info("a skill server answers again: it is called as before")
	}
}

// Breakers of a tenant, or of all (empty), that are not closed, or count failures.
func (r *Router) Breakers(tenant string) []breakers.Breaker { return r.breakers.List(tenant) }
