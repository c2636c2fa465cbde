package node

import (
	"context"
	"log/slog"
	"time"

	"aob.dev/writ/storage"
)

// expireEvery is how often expired memories are looked for. No read returns one
// meanwhile.
const expireEvery = 10 * time.Minute

// removeByAge is one round of expire.
func (n *Node) removeByAge(ctx context.Context) {
	now := n.cfg.Now()
	if c, blocked := n.blocked(); blocked { //nolint:contextcheck // the clock may not be right; it logs, and has no caller to wait for
		n.cfg.Log.WarnContext(ctx, "nothing is removed by age", slog.String("condition", c.Name))
		return
	}
	expired, old, err := storage.RemoveAged(ctx, n.documents, n.directory, now)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "documents stay whose time is over", slog.String("error", err.Error()))
	}
	if expired+old > 0 {
		n.cfg.Log.InfoContext(ctx, "documents removed whose time is over", slog.Int("expired", expired), slog.Int("old", old))
	}
}

// expire removes expired memories, and documents that a retention keeps no longer,
// at once and then again and again, until ctx ends. A store that is down is tried
// again the next time.
func (n *Node) expire(ctx context.Context) error {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		n.removeByAge(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
