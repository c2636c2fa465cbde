// Package telemetry publishes the metrics of a process, in the text format of
// Prometheus, at /metrics:
//
//	# HELP writ_held_plans Plans that are held in memory.
//	# TYPE writ_held_plans gauge
//	writ_held_plans{state="closed"} 12
//	writ_held_plans{state="open"} 3
//
// Beside it stand the runtime's own figures (go_…) and the process's (process_…).
package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metric is one figure. Its label takes values of a bounded set: a code or a state,
// never an id or a name that users choose.
type Metric struct {
	Name  string // in snake case; that of a counter ends in _total
	Help  string
	Label string // empty: there is one value, under ""
	// Counter: it only grows while the process lives.
	Counter bool
	// Values by the label's value, asked for at each request, by several at once.
	Values func() map[string]float64
}

// Single is the values of a metric without a label.
func Single[N int | int64](value N) map[string]float64 { return map[string]float64{"": float64(value)} }

// Figure is a metric with one value.
func Figure[N int | int64](name, help string, value func() N) Metric {
	return Metric{Name: name, Help: help, Values: func() map[string]float64 { return Single(value()) }}
}

// Labels are the values of a metric by its label.
func Labels[L ~string](counts map[L]int64) map[string]float64 {
	out := make(map[string]float64, len(counts))
	for label, n := range counts {
		out[string(label)] = float64(n)
	}
	return out
}

// Figures are all that a process counts.
type Figures struct{ all *prometheus.Registry }

// NewFigures has metrics, and those of the runtime and the process.
func NewFigures(metrics []Metric, asks *Asks, spans *Intents) *Figures {
	r := prometheus.NewRegistry()
	r.MustRegister(collector(metrics), asks.took, asks.overhead, asks.failed, asks.figures, spans.stages, spans.decided, spans.denied, spans.batch, spans.commit,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Figures{r}
}

// Handler serves /metrics and nothing else.
func Handler(f *Figures) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.all, promhttp.HandlerOpts{MaxRequestsInFlight: maxRequests}))
	return mux
}

// maxRequests are answered at once; a collector asks every few seconds.
const maxRequests = 4

// collector asks for the values at each request.
type collector []Metric

var _ prometheus.Collector = collector(nil)

func (m Metric) desc() *prometheus.Desc {
	var labels []string
	if m.Label != "" {
		labels = []string{m.Label}
	}
	return prometheus.NewDesc(m.Name, m.Help, labels, nil)
}

// Describe names the metrics.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c {
		out <- m.desc()
	}
}

// Collect gives their values of now.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c {
		desc, kind := m.desc(), prometheus.GaugeValue
		if m.Counter {
			kind = prometheus.CounterValue
		}
		for value, n := range m.Values() {
			var labels []string
			if m.Label != "" {
				labels = []string{value}
			}
			one, err := prometheus.NewConstMetric(desc, kind, n, labels...)
			if err != nil {
				one = prometheus.NewInvalidMetric(desc, err)
			}
			out <- one
		}
	}
}

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
