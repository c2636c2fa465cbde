package router

import (
	"context"
	"errors"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
)

// attempt decides an order, again if it was decided before, and commits it. The
// error errStale is that something it relied on has changed.
//
// Control orders change what each of them relies on, such as a tenant's data: side
// by side they would take each other's turn until one of them gave up. They are
// decided once more in a turn of their own.
func (r *Router) attempt(ctx context.Context, raw []byte, again bool) (*order, error) {
	seen := r.cfg.Records.Next()
	o, err := r.decide(ctx, raw, again)
	if r.behind(ctx, o, err, seen) {
		o, err = r.decide(ctx, raw, true)
	}
	if err == nil && o.decision.Verdict == intents.Allow && state.Administers(o.env.Type()) {
		r.turn.Lock()
		defer r.turn.Unlock()
		o, err = r.decide(ctx, raw, true)
	}
	if err != nil {
		r.turnedDown(ctx, raw, err)
		return nil, err
	}
	failpoint.Hit(failpoint.OrderDecided)
	began := time.Now()
	err = r.commit(ctx, o)
	r.took(ctx, "commit", began)
	if err != nil && !errors.Is(err, errStale) && intents.CodeOf(err) == intents.Overloaded {
		r.turnedDown(ctx, raw, signed(o, err))
	}
	return o, err
}
