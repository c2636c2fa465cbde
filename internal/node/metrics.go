package node

import (
	"aob.dev/writ/internal/telemetry"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
)

// Figures are what the node counts, for who collects them.
func (n *Node) Figures() *telemetry.Figures {
	return telemetry.NewFigures(n.metrics(), n.asks, n.orders)
}

// metrics are the figures of the parts that the process has.
func (n *Node) metrics() (out []telemetry.Metric) {
	for _, of := range []struct {
		there bool
		list  func() []telemetry.Metric
	}{
		{n.router != nil, n.routerMetrics}, {n.journal != nil, n.journalMetrics}, {n.recorder != nil, n.recorderMetrics}, {n.monitor != nil, n.monitorMetrics}, {true, n.processMetrics},
	} {
		if of.there {
			out = append(out, of.list()...)
		}
	}
	return out
}

func (n *Node) routerMetrics() []telemetry.Metric {
	counts := func() router.Counts { return n.router.Counts() }
	accepted := figure("writ_orders_accepted_total", "Accepted orders.", func() int64 { return counts().Accepted })
	accepted.Counter = true
	versions := figure("ps6_envelope_version_mismatch_total", "Enricher responses that were not shown, as no agent declares their major version, and orders of another version.", func() int64 { return counts().Versions })
	versions.Counter = true
	return []telemetry.Metric{
		accepted, versions,
		{
			Name: "ps6_envelope_principal_mismatch_total", Help: "Answers of skill servers for another user than the one who asked, none of which was shown, and orders for another user than their grant's.",
			Label: "consumer", Counter: true, Values: func() map[string]float64 {
				return map[string]float64{"consumer-agent": float64(counts().Principals)}
			},
		},
		{
			Name: "writ_executor_events_total", Help: "What executors report beside results, by event, such as skill.principal_mismatch.",
			Label: "event", Counter: true, Values: func() map[string]float64 { return labels(counts().Facts) },
		},
		{
			Name: "writ_orders_refused_total", Help: "Refused or held (APPROVAL_REQUIRED) orders, by code.",
			Label: "code", Counter: true, Values: func() map[string]float64 { return labels(counts().Refused) },
		},
		{
			Name: "writ_orders_ended_total", Help: "Orders of executors that have an outcome, by code.",
			Label: "code", Counter: true, Values: func() map[string]float64 { return labels(counts().Outcomes) },
		},
		{
			Name: "writ_model_tokens_total", Help: "Tokens that agents report to have used of models: input or output.",
			Label: "kind", Counter: true, Values: func() map[string]float64 { return labels(counts().Tokens) },
		},
		{
			Name: "writ_orders_running", Help: "Orders that are being carried out, by signer: agents and operators (role), or tasks.",
			Label: "signer", Values: func() map[string]float64 {
				l := n.router.Load()
				return map[string]float64{"role": float64(l.Orders), "task": float64(l.TaskOrders)}
			},
		},
		{
			Name: "circuit_breaker_state", Help: "Skill servers that fail: 0 closed, 1 half open, 2 open, of the tenant for which it is worst.",
			Label: "agent_id", Values: func() map[string]float64 {
				out := map[string]float64{}
				for _, b := range n.router.Breakers("") {
					out[b.Server] = max(out[b.Server], map[state.BreakerStatus]float64{state.BreakerHalfOpen: 1, state.BreakerOpen: 2}[b.Status])
				}
				return out
			},
		},
		{
			Name: "circuit_breaker_transitions_total", Help: "Breakers that came to be closed, half_open or open.",
			Label: "to", Counter: true, Values: func() map[string]float64 { return labels(counts().Breakers) },
		},
		{
			Name: "writ_holds", Help: "Orders that wait for people, by the half of their time that they are in.",
			Label: "half", Values: func() map[string]float64 {
				first, second, _ := n.directory.Waiting(n.cfg.Now())
				return map[string]float64{"first": float64(first), "second": float64(second)}
			},
		},
		figure("writ_holds_oldest_seconds", "How long the oldest of them has waited.", func() int64 {
			_, _, oldest := n.directory.Waiting(n.cfg.Now())
			return int64(oldest.Seconds())
		}),
		figure("writ_orders_recovered", "Orders that an earlier process had left open and this one has taken up.", func() int64 { return counts().Recovered }),
		figure("writ_orders_open", "Accepted orders of executors that have no outcome yet.", func() int { return counts().Held.Orders }),
		figure("writ_callers_waiting", "Callers that wait for the outcome of an order that another caller sent.", func() int { return n.router.Load().Callers }),
		{Name: "writ_held_plans", Help: "Plans in memory.", Label: "state", Values: func() map[string]float64 {
			h := counts().Held
			return map[string]float64{"open": float64(h.Open), "closed": float64(h.Closed)}
		}},
		figure("writ_held_tasks", "Tasks in memory.", func() int { return counts().Held.Tasks }),
		figure("writ_held_words_bytes", "Bytes of requests, steps and answers of the plans in memory.", func() int64 { return counts().Held.Words }),
		{
			Name: "writ_policy_decisions_total", Help: "Decisions of the policy in force: from the cache, or evaluated although they could have been cached.",
			Label: "from", Counter: true, Values: func() map[string]float64 {
				hits, misses := n.router.Remembered()
				return map[string]float64{"memory": float64(hits), "evaluation": float64(misses)}
			},
		},
	}
}

func (n *Node) monitorMetrics() []telemetry.Metric {
	return []telemetry.Metric{
		{
			Name: "writ_monitor", Help: "What the monitor saw in the last hour: rates from 0 to 1, counts, and seconds.",
			Label: "figure", Values: func() map[string]float64 { return n.monitor.Last().Gauges() },
		},
	}
}

func (n *Node) journalMetrics() []telemetry.Metric {
	return []telemetry.Metric{
		figure("writ_journal_records", "Records of the journal.", func() int64 { return n.journal.Next() }),
	}
}

func (n *Node) recorderMetrics() []telemetry.Metric {
	return []telemetry.Metric{
		figure("writ_ledger_leaves", "Records whose leaf is in the ledger.", func() int64 {
			if !n.recording.Load() {
				return 0 // another process has it
			}
			return n.ledger.Size()
		}),
		figure("writ_recorder_records", "Records that the documents contain.", func() int64 { return n.recorder.Reached() }),
		figure("writ_recorder_set_aside", "Records of which something could not be projected.", func() int { return len(n.recorder.SetAside()) }),
	}
}

func (n *Node) processMetrics() []telemetry.Metric {
	dropped := figure("writ_log_lines_dropped_total", "Lines of the log that were dropped, since nobody read it in time.", func() int64 {
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

// figure is a metric with one value.
func figure[N int | int64](name, help string, value func() N) telemetry.Metric {
	return telemetry.Metric{Name: name, Help: help, Values: func() map[string]float64 { return telemetry.One(value()) }}
}

func labels[L ~string](counts map[L]int64) map[string]float64 {
	out := make(map[string]float64, len(counts))
	for label, n := range counts {
		out[string(label)] = float64(n)
	}
	return out
}

func (n *Node) scripts() map[string]float64 {
	if n.box == nil {
		return nil
	}
	running, waiting := n.box.Load()
	return map[string]float64{"running": float64(running), "waiting": float64(waiting)}
}
