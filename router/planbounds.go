package router

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// DefaultTenantPlans and DefaultPlans bound how many plans may be open at once: the
// state keeps each with its texts until it is closed.
const (
	DefaultTenantPlans = 5_000
	DefaultPlans       = 20_000
)

// planRetry is when to try again where too many plans are open.
const planRetry = time.Minute

// mayOpen refuses to open a plan beyond the bounds; more are opened in the same
// batch before it. Orders that are decided at once may go beyond them by as many.
func (r *Router) mayOpen(o *order, more int) error {
	if !state.Opens(o.env.Type()) || o.decision.Verdict != intents.Allow {
		return nil
	}
	tenant, all := r.state.OpenPlans(o.env.Principal().Tenant)
	if below(tenant+more, r.cfg.TenantPlans) && below(all+more, r.cfg.Plans) {
		return nil
	}
	x := intents.Refuse(intents.Overloaded, "", "too many plans are open")
	x.RetryAfter, x.Hint = planRetry, "cancel plans that nobody needs any more: DELETE /agent/plans/{id}"
	return x
}
