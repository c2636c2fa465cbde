package router

import (
	"aob.dev/writ/internal/telemetry"
	"aob.dev/writ/router/breakers"
)

// Figures returns the router's metrics for a collector.
func (r *Router) Figures() []telemetry.Metric {
	counts := r.Counts
	accepted := telemetry.Figure("writ_intents_accepted_total", "Accepted intents.", func() int64 { return counts().Accepted })
	accepted.Counter = true
	versions := telemetry.Figure("ps6_envelope_version_mismatch_total", "Enricher responses that were not shown, as no agent declares their major version, and intents of another version.", func() int64 { return counts().Versions })
	versions.Counter = true
	return []telemetry.Metric{
		accepted, versions, r.shadowMetric(),
		{
			Name: "ps6_envelope_principal_mismatch_total", Help: "Answers of skill servers for another user than the one who asked, none of which was shown, and intents for another user than their grant's.",
			Label: "consumer", Counter: true, Values: func() map[string]float64 {
				return map[string]float64{"consumer-agent": float64(counts().Principals)}
			},
		},
		{
			Name: "writ_executor_events_total", Help: "What executors report beside results, by event, such as skill.principal_mismatch.",
			Label: "event", Counter: true, Values: func() map[string]float64 { return telemetry.Labels(counts().Events) },
		},
		{
			Name: "writ_intents_refused_total", Help: "Refused or held (APPROVAL_REQUIRED) intents, by code.",
			Label: "code", Counter: true, Values: func() map[string]float64 { return telemetry.Labels(counts().Refused) },
		},
		{
			Name: "writ_intents_ended_total", Help: "Intents of executors that have an outcome, by code.",
			Label: "code", Counter: true, Values: func() map[string]float64 { return telemetry.Labels(counts().Outcomes) },
		},
		{
			Name: "writ_model_tokens_total", Help: "Tokens that agents report to have used of models: input or output.",
			Label: "kind", Counter: true, Values: func() map[string]float64 { return telemetry.Labels(counts().Tokens) },
		},
		{
			Name: "writ_intents_running", Help: "Intents that are being carried out, by signer: agents and operators (role), or tasks.",
			Label: "signer", Values: func() map[string]float64 {
				l := r.Load()
				return map[string]float64{"role": float64(l.Intents), "task": float64(l.TaskIntents)}
			},
		},
		{
			Name: "circuit_breaker_state", Help: "Skill servers that fail: 0 closed, 1 half open, 2 open, of the tenant for which it is worst.",
			Label: "agent_id", Values: func() map[string]float64 {
				out := map[string]float64{}
				for _, b := range r.Breakers("") {
					out[b.Server] = max(out[b.Server], map[breakers.Status]float64{breakers.HalfOpen: 1, breakers.Open: 2}[b.Status])
				}
				return out
			},
		},
		{
			Name: "circuit_breaker_transitions_total", Help: "Breakers that came to be closed, half_open or open.",
			Label: "to", Counter: true, Values: func() map[string]float64 { return telemetry.Labels(counts().Breakers) },
		},
		{
			Name: "writ_holds", Help: "Intents that wait for people, by the half of their time that they are in.",
			Label: "half", Values: func() map[string]float64 {
				first, second, _ := r.cfg.State.Waiting(r.cfg.Now())
				return map[string]float64{"first": float64(first), "second": float64(second)}
			},
		},
		telemetry.Figure("writ_holds_oldest_seconds", "How long the oldest of them has waited.", func() int64 {
			_, _, oldest := r.cfg.State.Waiting(r.cfg.Now())
			return int64(oldest.Seconds())
		}),
		telemetry.Figure("writ_intents_recovered", "Intents that an earlier process had left open and this one has taken up.", func() int64 { return counts().Recovered }),
		telemetry.Figure("writ_intents_open", "Accepted intents of executors that have no outcome yet.", func() int { return counts().Stats.Intents }),
		telemetry.Figure("writ_callers_waiting", "Callers that wait for the outcome of an intent that another caller sent.", func() int { return r.Load().Callers }),
		{Name: "writ_held_plans", Help: "Plans in memory.", Label: "state", Values: func() map[string]float64 {
			h := counts().Stats
			return map[string]float64{"open": float64(h.Open), "closed": float64(h.Closed)}
		}},
		telemetry.Figure("writ_held_tasks", "Tasks in memory.", func() int { return counts().Stats.Tasks }),
		telemetry.Figure("writ_held_words_bytes", "Bytes of requests, steps and answers of the plans in memory.", func() int64 { return counts().Stats.Words }),
		{
			Name: "writ_policy_decisions_total", Help: "Decisions of the policy in force: from the cache, or evaluated although they could have been cached.",
			Label: "from", Counter: true, Values: func() map[string]float64 {
				hits, misses := r.MemoStats()
				return map[string]float64{"memory": float64(hits), "evaluation": float64(misses)}
			},
		},
	}
}
