package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"aob.dev/writ/cell"
	"aob.dev/writ/internal/telemetry"
	"aob.dev/writ/monitor"
	"aob.dev/writ/storage"
)

// openRecent makes the figures of the last hour, for the monitor and for people.
func (n *Node) openRecent(context.Context) error {
	n.recent = monitor.NewRecent(n.documents, n.tenants, n.cfg.Now, n.cfg.Log)
	return nil
}

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
		Recent: n.recent, Process: process, Receivers: n.cfg.Alerts, Dir: n.cfg.Dir,
	}
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

// Figures are the node's metrics, for collectors.
func (n *Node) Figures() *telemetry.Figures {
	return telemetry.NewFigures(n.metrics(), n.asks, n.intents)
}

// metrics are the figures of the parts that the process has.
func (n *Node) metrics() (out []telemetry.Metric) {
	if n.router != nil {
		out = n.router.Figures()
	}
	if n.journal != nil {
		out = append(out, telemetry.Figure("writ_journal_records", "Records of the journal.", func() int64 { return n.journal.Next() }))
	}
	if n.recorder != nil {
		out = append(out, n.recorderMetrics()...)
	}
	if n.monitor != nil {
		out = append(out, telemetry.Metric{
			Name: "writ_monitor", Help: "What the monitor saw in the last hour: rates from 0 to 1, counts, and seconds.",
			Label: "figure", Values: func() map[string]float64 { return n.monitor.Last().Gauges() },
		})
	}
	return append(out, n.processMetrics()...)
}

func (n *Node) recorderMetrics() []telemetry.Metric {
	return []telemetry.Metric{
		telemetry.Figure("writ_ledger_leaves", "Records whose leaf is in the ledger.", func() int64 {
			if !n.recording.Load() {
				return 0 // another process has it
			}
			return n.ledger.Size()
		}),
		telemetry.Figure("writ_recorder_records", "Records that the documents contain.", func() int64 { return n.recorder.Reached() }),
		telemetry.Figure("writ_recorder_set_aside", "Records of which something could not be projected.", func() int { return len(n.recorder.SetAside()) }),
	}
}

func (n *Node) processMetrics() []telemetry.Metric {
	dropped := telemetry.Figure("writ_log_lines_dropped_total", "Lines of the log that were dropped, since nobody read it in time.", func() int64 {
		if n.cfg.Dropped == nil {
			return 0
		}
		return n.cfg.Dropped()
	})
	dropped.Counter = true
	return []telemetry.Metric{
		dropped,
		{Name: "writ_scripts", Help: "Scripts in the sandbox: running, or waiting for their turn.", Label: "state", Values: n.scripts},
		{Name: "writ_write_ahead_log_bytes", Help: "Bytes of the write-ahead logs of the databases of the data directory.", Label: "database", Values: n.logs},
		{Name: "writ_degraded", Help: "1 for each condition that readyz reports.", Label: "condition", Values: func() map[string]float64 {
			out := map[string]float64{}
			for _, c := range n.health.List() {
				out[c.Name] = 1
			}
			return out
		}},
	}
}

func (n *Node) scripts() map[string]float64 {
	if n.box == nil {
		return nil
	}
	running, waiting := n.box.Load()
	return map[string]float64{"running": float64(running), "waiting": float64(waiting)}
}
