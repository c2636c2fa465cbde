package skills

import (
	"fmt"
	"math"
	"sync"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// rates limits each tenant to the calls per minute that the documents of its skills allow.
// The zero value is ready; safe for concurrent use.
type rates struct {
	mu    sync.Mutex
	table *ratelimit.Table[rate] // by tenant and skill
}

// rateShares are of the rates: of all, and of a tenant's.
var rateShares = ratelimit.Shares{All: 10_000, Tenant: 2000, Key: 2000}

type rate struct {
	rpm   int
	calls *ratelimit.Limiter
}

// allow consumes one call of a tenant. If none is left, it returns when there will be one.
func (r *rates) allow(tenant, skill string, rpm int, now func() time.Time) (wait time.Duration, ok bool) {
	if rpm == 0 {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table == nil {
		r.table = ratelimit.NewTable[rate](rateShares, nil)
	}
	key := tenant + " " + skill
	is, ok := r.table.Get(key)
	if !ok || is.rpm != rpm {
		is = rate{rpm, ratelimit.New(rpm, time.Minute, ratelimit.Unshared(1), now)}
		r.table.Put(key, tenant, "", 1, is)
	}
	return is.calls.Allow(ratelimit.Caller{})
}

// withinRates refuses a call beyond the tenant's rate or the server's. It was not sent.
func (s *skills) withinRates(o *executors.Intent, skill string, on *server) error {
	if wait, ok := s.rates.allow(o.Ticket.Actor.Tenant, skill, o.Ticket.RPM, s.Now); !ok {
		return busy(wait, fmt.Sprintf("the tenant gets no more than the %d calls of %s a minute that the skill's document allows", o.Ticket.RPM, skill))
	}
	if wait, ok := on.terms.Calls.Allow(ratelimit.Caller{}); !ok {
		return busy(wait, "the skill server gets no more calls a minute than its rpm allows")
	}
	return nil
}

func busy(wait time.Duration, reason string) *executors.Failure {
	seconds := int(math.Ceil(wait.Seconds()))
	return executors.Fail(intents.RateLimited, fmt.Sprintf("%s: try again in %d s", reason, seconds)).WithDetails(map[string]int{"retry_after_sec": seconds})
}
