package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"aob.dev/writ/cell"
	"aob.dev/writ/monitor"
	"aob.dev/writ/storage"
)

// openMonitor makes the monitor of this process. It reads the documents, as anybody could, and the
// process's own figures.
func (n *Node) openMonitor(context.Context) error {
	process := func() monitor.Process { return n.processStatus().Process(&n.lag, n.cfg.Now()) }
	if !n.standalone() {
		others, err := n.cellProcesses()
		if err != nil {
			return err
		}
		process = others.Process
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

// conditions are the names of those that the process reports.
func (n *Node) conditions() (names []string) {
	for _, c := range n.health.List() {
		names = append(names, c.Name)
	}
	return names
}

// processStatus is how this process stands.
func (n *Node) processStatus() (s monitor.ProcessStatus) {
	_, s.HoldsLate, _ = n.directory.Waiting(n.cfg.Now())
	s.Records, s.Conditions = n.journal.Next(), n.conditions()
	if n.recording.Load() {
		s.Leaves = n.ledger.Size()
	}
	return s
}

// cellProcesses are those that the monitor of a cell asks.
func (n *Node) cellProcesses() (*monitor.Cell, error) {
	out := &monitor.Cell{Processes: map[string][]*http.Client{}, Own: n.conditions, Now: n.cfg.Now, Log: n.cfg.Log}
	for role, urls := range map[string][]string{"router": n.cfg.Cluster.Routers, "recorder": n.cfg.Cluster.Recorders} {
		for _, u := range urls {
			c, err := cell.Client(u)
			if err != nil {
				return nil, fmt.Errorf("%ss: %w", role, err)
			}
			out.Processes[role] = append(out.Processes[role], c)
		}
	}
	return out, nil
}
