package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/internal/monitor"
	"aob.dev/writ/storage"
)

// openMonitor makes the monitor of this process. It reads the documents as anybody could,
// and what the process knows of itself.
func (n *Node) openMonitor(context.Context) error {
	process := n.process
	if !n.alone() {
		others, err := n.openCellmates()
		if err != nil {
			return err
		}
		process = others.process
	}
	n.monitor = &monitor.Watch{
		Documents: n.documents, Tenants: n.tenants, Process: process, Receivers: n.cfg.Alerts,
		Dir: n.cfg.Dir, Now: n.cfg.Now, Log: n.cfg.Log,
	}
	return nil
}

func (n *Node) startMonitor(g *group) error {
	g.run("monitor", n.monitor.Run)
	return nil
}

// tenants are those of the records or, where the process does not follow them, those whose
// plans are among the documents.
func (n *Node) tenants() []string {
	if n.directory != nil {
		return n.directory.Tenants()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	of, ok := n.documents.(interface {
		Tenants(ctx context.Context, index string) ([]string, error)
	})
	if !ok {
		return nil
	}
	list, err := of.Tenants(ctx, storage.IndexPlans)
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "the monitor does not know the tenants", slog.String("error", err.Error()))
	}
	return list
}

// process is what this process knows, with everything in it.
func (n *Node) process() monitor.Process { return n.standing().process(&n.lag, n.cfg.Now()) }

// lag is how long one who follows has not come on though there is more.
type lag struct {
	mu    sync.Mutex // guards what follows
	at    int64
	since time.Time // when it was first seen there, being behind; zero: it is not
}

func (l *lag) of(at, end int64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case at >= end:
		l.since = time.Time{}
	case l.since.IsZero() || at != l.at:
		l.since = now
	}
	l.at = at
	if l.since.IsZero() {
		return 0
	}
	return now.Sub(l.since)
}
