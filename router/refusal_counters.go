package router

import (
	"context"
	"log/slog"
	"time"

	"aob.dev/writ/state"
)

// maxSigners bounds a counter record.
const maxSigners = 16

// counterEvery is the least time between two counter records: a flood of refused intents is
// recorded without filling the disk.
const counterEvery = time.Second

// Run records once a second how many refusals were only counted, if any, until ctx ends; then a
// last time. It also stores the breakers' counts (breakers.Terms.Sync).
//
// Crash: counts since the last record are lost.
func (r *Router) Run(ctx context.Context) error {
	tick := time.NewTicker(counterEvery)
	again := time.NewTicker(eraseRetry)
	breakers := time.NewTicker(r.cfg.Breakers.Sync)
	defer breakers.Stop()
	defer tick.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			r.recordCounters(context.WithoutCancel(ctx))
			r.breakers.Sync(ctx)
			return nil
		case <-breakers.C:
			r.breakers.Sync(ctx)
		case <-tick.C:
			r.recordCounters(ctx)
		case <-again.C:
			r.eraseInBackground(ctx)
		}
	}
}

func (r *Router) recordCounters(ctx context.Context) {
	if r.state.Origin() == "" {
		return // nothing comes before the genesis
	}
	c := r.metrics.take()
	if c == nil {
		return
	}
	if err := commitControl(ctx, r.cfg.Journal, state.Control{Counters: c}, r.cfg.Now()); err != nil {
		r.metrics.giveBack(c)
		r.cfg.Log.WarnContext(ctx, "counted refusals are recorded later", slog.String("error", err.Error()))
	}
}
