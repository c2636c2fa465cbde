package router

import (
	"cmp"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/state"
)

// Rates bound how many intents a second are decided, of one signer in one tenant and of one tenant.
// They are metered once the signer is known. Bursts of ten seconds' worth are allowed. 0: the
// default; negative: no limit.
type Rates struct {
	Signer, Tenant int
}

// Defaults of the rates. They prevent one caller from taking all capacity; the gateway bounds what
// a user may ask far below them.
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

// rate comes right after stage 2: above the rate, nothing is looked up, judged or recorded. A
// submission counts once, however often it is decided again.
func (r *Router) rate(env *intents.Envelope) error {
	tenant := env.Principal().Tenant
	after, ok := r.meters.signers.Allow(ratelimit.Caller{Tenant: tenant, Name: env.Signer().KID})
	if ok {
		after, ok = r.meters.tenants.Allow(ratelimit.Caller{Tenant: tenant})
	}
	if ok {
		return nil
	}
	x := intents.Refuse(intents.RateLimited, "", "more intents of this signer or tenant than its rate allows")
	x.RetryAfter = after
	return x
}

// batchShares are the places of batches, which are large and take long.
var batchShares = ratelimit.Shares{All: 64, Tenant: 16, Key: 16}

// take reserves a place for an intent's tenant and key, or refuses with what it is for.
func take(p *ratelimit.Places, of *intents.Envelope, what string) (leave func(), err error) {
	leave, ok := p.Take(of.Principal().Tenant, keyOf(of))
	if !ok {
		return nil, intents.Refuse(intents.Overloaded, "", "too many "+what+" are being carried out")
	}
	return leave, nil
}

// keyOf is the API key or the access token's person under which an intent was made, or else the key that signed it.
func keyOf(of *intents.Envelope) string {
	key := ""
	if g := of.Grant(); g != nil {
		key = intents.CallerOf(g.Act.Client)
	}
	return cmp.Or(key, of.Signer().KID)
}

// batch is a batch in progress.
type batch struct {
	raws   [][]byte
	envs   []*intents.Envelope // of raws, as soon as the signature of each is verified
	places *ratelimit.Places
	first  *intents.Envelope // its first intent, once that was decided
	left   func()            // frees its place; nil: it has none
}

func newBatch(raws [][]byte, places *ratelimit.Places) *batch {
	return &batch{raws: raws, envs: make([]*intents.Envelope, len(raws)), places: places}
}

// enter takes a place once the batch's signer is known.
func (b *batch) enter(first *intents.Envelope) (err error) {
	if b.first = first; b.left == nil {
		b.left, err = take(b.places, first, "batches")
	}
	return err
}

func (b *batch) leave() {
	if b.left != nil {
		b.left()
	}
}

// DefaultTenantPlans and DefaultPlans bound how many plans may be open at once: the state keeps
// each with its texts until it is closed.
const (
	DefaultTenantPlans = 5_000
	DefaultPlans       = 20_000
)

// planRetry is when to try again if too many plans are open.
const planRetry = time.Minute

// mayOpen refuses to open a plan beyond the bounds; more is the number opened earlier in the same
// batch. Concurrent decisions may exceed the bounds by their number.
func (r *Router) mayOpen(d *decision, more int) error {
	if !state.Opens(d.env.Type()) || d.Verdict != intents.Allow {
		return nil
	}
	tenant, all := r.state.OpenPlans(d.env.Principal().Tenant)
	if below(tenant+more, r.cfg.TenantPlans) && below(all+more, r.cfg.Plans) {
		return nil
	}
	x := intents.Refuse(intents.Overloaded, "", "too many plans are open")
	x.RetryAfter, x.Hint = planRetry, "cancel plans that nobody needs any more: DELETE /agent/plans/{id}"
	return x
}
