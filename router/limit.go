package router

import (
	"cmp"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// Rates are how many orders a second are decided on, metered once it is known
// who signed: of one signer in one tenant, and of one tenant. Ten
// seconds' worth may come at once. 0: the default; negative: no limit.
type Rates struct {
	Signer, Tenant int
}

// Defaults of the rates. They keep one caller from taking all there is; what a
// user may ask is bounded at the gateway, far below.
const (
	DefaultSignerRate = 500
	DefaultTenantRate = 1000
)

const (
	rateWindow = 10 * time.Second
)

// metered bounds how many signers, of a tenant too, and how many tenants are remembered.
var metered = ratelimit.Shares{All: 10_000, Tenant: 2000, Key: 2000}

// meters are the token buckets of signers and tenants.
type meters struct {
	signers, tenants *ratelimit.Limiter
}

func newMeters(r Rates, now func() time.Time) meters {
	meter := func(rate int) *ratelimit.Limiter {
		return ratelimit.New(rate*int(rateWindow/time.Second), rateWindow, metered, now)
	}
	return meters{meter(cmp.Or(r.Signer, DefaultSignerRate)), meter(cmp.Or(r.Tenant, DefaultTenantRate))}
}

// rate comes right after stage 2: nothing is looked up, judged or recorded for who
// is above the rate. A submission counts once, however often it is decided again.
func (r *Router) rate(o *order) error {
	if o.again {
		return nil
	}
	tenant := o.env.Principal().Tenant
	after, ok := r.meters.signers.Allow(ratelimit.Caller{Tenant: tenant, Name: o.env.Signer().KID})
	if ok {
		after, ok = r.meters.tenants.Allow(ratelimit.Caller{Tenant: tenant})
	}
	if ok {
		return nil
	}
	x := intents.Refuse(intents.RateLimited, "", "more orders of this signer or tenant than its rate allows")
	x.RetryAfter = after
	return x
}
