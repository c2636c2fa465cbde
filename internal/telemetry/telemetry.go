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
