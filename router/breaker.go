package router

import (
	"log/slog"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// mark says how an order that executors carry out goes to its skill server. It stands in the
// facts, and its commit relies on it. ahead are probes before it in its batch.
//
// Crash after the commit of a probe: it stays one of its round, which ends without it.
func (o *order) mark(ahead int) {
	o.facts.Breaker = o.view.Breaker(o.inPlan(), ahead)
}

// unsent is the outcome of an order that the breaker of its skill server refuses.
func (r *Router) unsent(o *order) intents.Outcome {
	out := intents.Outcome{Of: o.position, Attempt: o.attempt, Status: intents.Failed, Code: intents.DispatchUnavailable, Retryable: true}
	out.Reason = "nothing was sent, since the skill server fails: " + r.breakerOf(o).String()
	return out
}

// breakerOf an order, as it is at the time of its decision.
func (r *Router) breakerOf(o *order) state.Breaker {
	tenant, server, _ := strings.Cut(o.inPlan().BreakerName(), "/")
	for _, b := range r.state.Breakers(tenant, o.now) {
		if b.Server == server {
			return b
		}
	}
	return state.Breaker{Tenant: tenant, Server: server, Status: state.BreakerClosed} // it has answered since
}

// breakerMoved counts and logs that a breaker has another status.
func (r *Router) breakerMoved(b state.Breaker) {
	r.metrics.mu.Lock()
	count(&r.metrics.breakers, b.Status, 1)
	r.metrics.mu.Unlock()
	log := r.cfg.Log.With(slog.String("server", b.Server), slog.String("tenant", b.Tenant))
	switch b.Status {
	case state.BreakerOpen:
		log.Warn("a skill server has failed too often: it is not called for now", slog.Int("failures", b.Failures), slog.Time("since", b.Since), slog.Time("next_probe", b.Next))
	case state.BreakerHalfOpen:
		log.Info("a skill server that failed is tried again")
	case state.BreakerClosed:
		log.Info("a skill server answers again: it is called as before")
	}
}

// Breakers of a tenant, or of all (empty), that are not closed, or count failures.
func (r *Router) Breakers(tenant string) []state.Breaker {
	return r.state.Breakers(tenant, r.cfg.Now())
}

// breakerTerms that are in force once this router has started.
func (r *Router) breakerTerms() intents.BreakerTerms {
	if r.cfg.Breakers == nil {
		return intents.DefaultBreakers
	}
	return *r.cfg.Breakers
}
