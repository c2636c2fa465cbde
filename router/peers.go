package router

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// Peers are the other routers of one log. Implementations are safe for concurrent use.
type Peers interface {
	// Lost says whether the router that carries an open order out is surely gone.
	Lost(position int64) bool
	// Fresh waits until everything was seen that any router had committed before the call.
	Fresh(ctx context.Context) error
}

// lostPace is how often orders of routers that are gone are looked for.
const lostPace = time.Second

// recoverLost is Recover beside other routers: it ends what they leave open when they die,
// until ctx ends. Of routers that take up the same order one wins; the others find it taken.
func (r *Router) recoverLost(ctx context.Context) error {
	var dispatched sync.WaitGroup
	defer dispatched.Wait()
	tried := map[storage.OpenOrder]bool{} // each attempt once, whatever comes of it
	for clock.Sleep(ctx, lostPace) == nil {
		open, err := r.cfg.Journal.OpenOrders(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.cfg.Log.WarnContext(ctx, "open orders cannot be listed", slog.String("error", err.Error()))
			}
			continue
		}
		before := tried
		tried = map[storage.OpenOrder]bool{}
		for _, x := range open {
			if !r.cfg.Peers.Lost(x.Position) {
				continue
			}
			if tried[x] = true; !before[x] {
				r.left = append(r.left, x)
			}
		}
		r.recoverLeft(ctx, &dispatched) // an order that waits for its executor holds up no other
		r.left = nil
	}
	return nil
}

// behind says whether a decision may come of what another router has committed and this one
// had not seen: a refusal. What is accepted needs no such question, since its commit asks it.
// seen is how many records there were here before the decision.
func (r *Router) behind(ctx context.Context, o *order, err error, seen int64) bool {
	var x *intents.Refusal
	switch {
	case err == nil:
		return o.decision.Verdict == intents.Deny && r.refreshed(ctx, seen)
	case errors.As(err, &x):
		return (x.Code == intents.KeyUnknown || x.Code == intents.KeyRevoked || x.Code == intents.TaskScope) && r.refreshed(ctx, seen)
	}
	return false
}

// refreshed says whether there is something now that was not among the first records: this
// router had not seen it, or came to see it meanwhile.
func (r *Router) refreshed(ctx context.Context, seen int64) bool {
	if r.cfg.Peers == nil {
		return false
	}
	return r.cfg.Peers.Fresh(ctx) == nil && r.cfg.Records.Next() != seen
}
