package router

import (
	"log/slog"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// mark records how the breaker lets an executor's intent go to its skill server. The mark is one of
// the decision's inputs, and the commit reads it. ahead counts the probes before it in its batch.
//
// Crash after the commit of a probe: it stays a probe of its round, which ends without it.
func (x *execution) mark(ahead int) {
	x.inputs.Breaker = x.view.Breaker(x.inPlan(), ahead)
}

// unsent is the outcome of an intent that the breaker of its skill server refuses.
func (r *Router) unsent(x *execution) intents.Outcome {
	out := intents.Outcome{Target: x.position, Attempt: x.attempt, Status: intents.Failed, Code: intents.DispatchUnavailable, Retryable: true}
	out.Reason = "nothing was sent, since the skill server fails: " + r.breakerOf(x).String()
	return out
}

// breakerOf returns the intent's breaker at the time of its decision.
func (r *Router) breakerOf(x *execution) state.Breaker {
	tenant, server, _ := strings.Cut(x.inPlan().BreakerName(), "/")
	for _, b := range r.state.Breakers(tenant, x.now) {
		if b.Server == server {
			return b
		}
	}
	return state.Breaker{Tenant: tenant, Server: server, Status: state.BreakerClosed} // it has answered since
}

// breakerChanged counts and logs a breaker's new status.
func (r *Router) breakerChanged(b state.Breaker) {
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

// breakerTerms returns the terms that are in force once this router has started.
func (r *Router) breakerTerms() intents.BreakerTerms {
	if r.cfg.Breakers == nil {
		return intents.DefaultBreakers
	}
	return *r.cfg.Breakers
}
