package node

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/telemetry"
)

// metrics are the figures of the parts of a node.
func (n *Node) metrics() []telemetry.Metric {
	return []telemetry.Metric{
		{Name: "writ_orders_accepted_total", Help: "Orders that were accepted.", Counter: true, Values: func() map[string]float64 {
			return telemetry.One(n.router.Counts().Accepted)
		}},
		{Name: "writ_orders_refused_total", Help: "Orders that were refused, or held (APPROVAL_REQUIRED), by code.", Label: "code", Counter: true, Values: func() map[string]float64 {
			return byCode(n.router.Counts().Refused)
		}},
		{Name: "writ_orders_ended_total", Help: "Orders of executors that have an outcome, by code.", Label: "code", Counter: true, Values: func() map[string]float64 {
			return byCode(n.router.Counts().Outcomes)
		}},
		{Name: "writ_orders_running", Help: "Orders that are carried out, by who signed: agents and operators, or tasks.", Label: "signer", Values: func() map[string]float64 {
			l := n.router.Load()
			return map[string]float64{"role": float64(l.Orders), "task": float64(l.TaskOrders)}
		}},
		{Name: "writ_callers_waiting", Help: "Callers that wait for the outcome of an order which another one sent.", Values: func() map[string]float64 {
			return telemetry.One(n.router.Load().Callers)
		}},
		{Name: "writ_held_plans", Help: "Plans that are held in memory.", Label: "state", Values: func() map[string]float64 {
			h := n.router.Counts().Held
			return map[string]float64{"open": float64(h.Open), "closed": float64(h.Closed)}
		}},
		{Name: "writ_held_tasks", Help: "Tasks that are held in memory.", Values: func() map[string]float64 {
			return telemetry.One(n.router.Counts().Held.Tasks)
		}},
		{Name: "writ_held_words_bytes", Help: "Bytes of requests, steps and answers of the plans that are held in memory.", Values: func() map[string]float64 {
			return telemetry.One(n.router.Counts().Held.Words)
		}},
		{Name: "writ_policy_decisions_total", Help: "Decisions of the policy in force: remembered, or evaluated although they could have been.", Label: "from", Counter: true, Values: func() map[string]float64 {
			hits, misses := n.router.Remembered()
			return map[string]float64{"memory": float64(hits), "evaluation": float64(misses)}
		}},
		{Name: "writ_scripts", Help: "Scripts in the sandbox, by whether they run or wait for their turn.", Label: "state", Values: n.scripts},
		{Name: "writ_journal_records", Help: "Records of the journal.", Values: func() map[string]float64 {
			return telemetry.One(n.journal.Next())
		}},
		{Name: "writ_ledger_leaves", Help: "Records whose leaf is in the ledger.", Values: func() map[string]float64 {
			return telemetry.One(n.ledger.Size())
		}},
		{Name: "writ_recorder_records", Help: "Records that the documents have.", Values: func() map[string]float64 {
			return telemetry.One(n.recorder.Reached())
		}},
		{Name: "writ_degraded", Help: "1 for each condition that readyz tells.", Label: "condition", Values: func() map[string]float64 {
			out := map[string]float64{}
			for _, c := range n.health.List() {
				out[c.Name] = 1
			}
			return out
		}},
	}
}

func byCode(counts map[intents.Code]int64) map[string]float64 {
	out := make(map[string]float64, len(counts))
	for code, n := range counts {
		out[string(code)] = float64(n)
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
