package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/storage"
)

// expireEvery is how often expired memories are looked for. No read returns one
// meanwhile.
const expireEvery = 10 * time.Minute

// removeExpired removes the memories that have expired by now.
func removeExpired(ctx context.Context, docs storage.Documents, tenants []string, now time.Time) (removed int, failed error) {
	over := storage.Query{Ranges: map[string]storage.Range{"ttl_at": {LT: now.UTC().Format(time.RFC3339Nano)}}}
	for _, tenant := range tenants {
		n, err := docs.Purge(ctx, tenant, storage.IndexMemory, over)
		removed += n
		failed = errors.Join(failed, err)
	}
	return removed, failed
}

// expire removes expired memories at once and then again and again, until ctx
// ends. A store that is down is tried again the next time.
func (n *Node) expire(ctx context.Context) error {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		removed, err := removeExpired(ctx, n.documents, n.directory.Tenants(), n.cfg.Now())
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			n.cfg.Log.WarnContext(ctx, "expired memories stay", slog.String("error", err.Error()))
		case removed > 0:
			n.cfg.Log.InfoContext(ctx, "expired memories removed", slog.Int("documents", removed))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
