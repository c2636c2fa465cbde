package router

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// Peers are the other routers of one log. Implementations are safe for concurrent use.
type Peers interface {
	// Lost reports whether the router that executes an open intent is certainly gone.
	Lost(position int64) bool
	// Fresh waits until this router has seen everything that any router had committed before the
	// call.
	Fresh(ctx context.Context) error
}

// lostPace is how often intents of routers that are gone are looked for.
const lostPace = time.Second

// recoverLost is Recover beside other routers: until ctx ends, it ends what they leave open when
// they die. If several routers try to resume the same intent, one wins.
func (r *Router) recoverLost(ctx context.Context) error {
	var dispatched sync.WaitGroup
	defer dispatched.Wait()
	tried := map[storage.OpenIntent]bool{} // each attempt once, whatever its result
	for clock.Sleep(ctx, lostPace) == nil {
		open, err := r.cfg.Journal.OpenIntents(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.cfg.Log.WarnContext(ctx, "open intents cannot be listed", slog.String("error", err.Error()))
			}
			continue
		}
		before := tried
		tried = map[storage.OpenIntent]bool{}
		for _, x := range open {
			if !r.cfg.Peers.Lost(x.Position) || r.endUnexplained(ctx, x) || !r.allExplained() {
				continue
			}
			if tried[x] = true; !before[x] {
				r.left = append(r.left, x)
			}
		}
		r.recoverLeft(ctx, &dispatched) // an intent that waits for its executor delays no other
		r.left = nil
	}
	return nil
}

// seeingAll judges, and judges again if the result is a refusal and another router has committed
// records that this one had not seen: the refusal may be due to that. An acceptance needs no such
// check, since its commit makes it.
func (r *Router) seeingAll(ctx context.Context, judge func() (refused bool)) {
	if r.cfg.Peers == nil {
		judge()
		return
	}
	seen := r.cfg.Records.Next()
	if judge() && r.refreshed(ctx, seen) {
		judge()
	}
}

// refreshed reports whether there is a record beyond the first seen ones: this router had not seen
// it, or has seen it meanwhile.
func (r *Router) refreshed(ctx context.Context, seen int64) bool {
	if r.cfg.Peers == nil {
		return false
	}
	return r.cfg.Peers.Fresh(ctx) == nil && r.cfg.Records.Next() != seen
}
