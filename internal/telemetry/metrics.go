package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Asks are the metrics of asked agents, by agent, and of turns.
// Operators choose the names of agents.
type Asks struct {
	took     *prometheus.HistogramVec
	overhead *prometheus.HistogramVec
	failed   *prometheus.CounterVec
	figures  *prometheus.CounterVec
}

// NewAsks has none yet.
func NewAsks() *Asks {
	return &Asks{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agent_dispatch_duration_ms", Help: "How long agents took that were asked, in milliseconds.",
			Buckets: prometheus.ExponentialBuckets(100, 2, 11),
		}, []string{"agent_id"}),
		overhead: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agent_dispatch_overhead_seconds", Help: "What of that neither the models of agents nor their calls took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}, []string{"agent_id"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_dispatch_errors_total", Help: "Agents that were asked and gave no answer.",
		}, []string{"agent_id", "error_type"}),
		figures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agent_turn_figures_total", Help: "Turns by how many agents were asked (intents) and by cap, asks by outcome, failures by axis, and shown statuses.",
		}, []string{"figure", "value"}),
	}
}

// Count counts one ask with its duration, of which its model and its calls took busy. failure is
// empty if it was answered.
func (a *Asks) Count(agent string, took, busy time.Duration, failure string) {
	a.took.WithLabelValues(agent).Observe(float64(took.Milliseconds()))
	if failure != "" {
		a.failed.WithLabelValues(agent, failure).Inc()
		return
	}
	a.overhead.WithLabelValues(agent).Observe((took - busy).Seconds())
}

// Figure counts what happened in a turn.
func (a *Asks) Figure(name, value string) { a.figures.WithLabelValues(name, value).Inc() }

// Intents are the figures of the router and its journal. Types are those of the catalog, and
// policies those that operators have written.
type Intents struct {
	stages  *prometheus.HistogramVec
	decided *prometheus.CounterVec
	denied  *prometheus.CounterVec
	batch   prometheus.Histogram
	commit  prometheus.Histogram
}

// NewIntents has none yet.
func NewIntents() *Intents {
	seconds := prometheus.ExponentialBuckets(0.00005, 2, 20) // 50 µs to 26 s
	return &Intents{
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "writ_stage_seconds", Help: "How long the stages of intents took.", Buckets: seconds,
		}, []string{"stage"}),
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_intents_decided_total", Help: "Decided intents, by type (unknown: no signature held, or there is no such type) and code.",
		}, []string{"type", "code"}),
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_policy_denials_total", Help: "Intents that a rule of the policy refused or held, by rule.",
		}, []string{"policy"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "writ_journal_commit_intents", Help: "Commits of the journal that share one sync.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "writ_journal_commit_seconds", Help: "How long it took to write and sync them.", Buckets: seconds,
		}),
	}
}

// Stage records the duration of a stage of one intent.
func (o *Intents) Stage(name string, took time.Duration) {
	o.stages.WithLabelValues(name).Observe(took.Seconds())
}

// Decided records the decision on an intent of a type, and its policy rules. An empty type is one
// outside the catalog.
func (o *Intents) Decided(typ, code string, rules []string) {
	if typ == "" {
		typ = "unknown"
	}
	o.decided.WithLabelValues(typ, code).Inc()
	for _, rule := range rules {
		o.denied.WithLabelValues(rule).Inc()
	}
}

// Committed records the number of commits written with one sync, and its duration.
func (o *Intents) Committed(n int, took time.Duration) {
	o.batch.Observe(float64(n))
	o.commit.Observe(took.Seconds())
}
