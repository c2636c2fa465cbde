package node

import (
	"sync"
	"time"

	"aob.dev/writ/internal/monitor"
)

// newMonitor is the monitor of this process. It reads the documents as anybody could, and
// what the process knows of itself.
func (n *Node) newMonitor() *monitor.Watch {
	return &monitor.Watch{
		Documents: n.documents, Tenants: n.directory.Tenants, Process: n.process, Receivers: n.cfg.Alerts,
		Dir: n.cfg.Dir, Now: n.cfg.Now, Log: n.cfg.Log,
	}
}

func (n *Node) process() monitor.Process {
	now := n.cfg.Now()
	_, late, _ := n.directory.Waiting(now)
	p := monitor.Process{HoldsLate: late, LedgerBehind: n.lag.of(n.ledger.Size(), n.journal.Next(), now), Conditions: []string{}}
	for _, c := range n.health.List() {
		p.Conditions = append(p.Conditions, c.Name)
	}
	return p
}

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
