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
