package router

import (
	"context"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
)

// Counters are refusals that left no record of their own since the last counter
// record: those of stages 1, 2 and 4 and of a rate, those of a batch as such, and
// repeated ones. They name keys, never tenants or orders.
type Counters struct {
	Refused map[intents.Code]int64 `json:"refused"`
	Signers []SignerCount          `json:"signers,omitempty"` // whose signature held, most first
}

// SignerCount is how many of a signer's orders were refused.
type SignerCount struct {
	KID     string `json:"kid"`
	Refused int64  `json:"refused"`
}

// maxSigners bounds a counter record.
const maxSigners = 16

// counterEvery is the least time between two counter records: a flood neither
// hides nor fills the disk.
const counterEvery = time.Second

// Run records what was refused and only counted, once a second while there is
// anything to say, until ctx ends; then a last time.
//
// Crash: what was counted since the last record is lost.
func (r *Router) Run(ctx context.Context) error {
	tick := time.NewTicker(counterEvery)
	again := time.NewTicker(eraseAgain)
	defer tick.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			r.recordCounters(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
			r.recordCounters(ctx)
		case <-again.C:
			r.eraseLater(ctx)
		}
	}
}

func (r *Router) recordCounters(ctx context.Context) {
	if r.dir.Origin() == "" {
		return // nothing comes before the genesis
	}
	c := r.metrics.take()
	if c == nil {
		return
	}
	if err := commitControl(ctx, r.cfg.Journal, Control{Counters: c}, r.cfg.Now()); err != nil {
		r.metrics.giveBack(c)
		r.cfg.Log.WarnContext(ctx, "counted refusals are recorded later", slog.String("error", err.Error()))
	}
}
