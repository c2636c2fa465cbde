package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Orders are the figures of the router and its journal. Types are those of the catalog, and
// policies those that operators have written.
type Orders struct {
	stages  *prometheus.HistogramVec
	decided *prometheus.CounterVec
	denied  *prometheus.CounterVec
	batch   prometheus.Histogram
	commit  prometheus.Histogram
}

// NewOrders has none yet.
func NewOrders() *Orders {
	seconds := prometheus.ExponentialBuckets(0.00005, 2, 20) // 50 µs to 26 s
	return &Orders{
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "writ_stage_seconds", Help: "How long the stages of orders took.", Buckets: seconds,
		}, []string{"stage"}),
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_orders_decided_total", Help: "Decided orders, by type (unknown: no signature held, or there is no such type) and code.",
		}, []string{"type", "code"}),
		denied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_policy_denials_total", Help: "Orders that a rule of the policy refused or held, by rule.",
		}, []string{"policy"}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "writ_journal_commit_orders", Help: "Commits of the journal that share one sync.", Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "writ_journal_commit_seconds", Help: "How long it took to write and sync them.", Buckets: seconds,
		}),
	}
}

// Stage tells what a stage of one order took.
func (o *Orders) Stage(name string, took time.Duration) {
	o.stages.WithLabelValues(name).Observe(took.Seconds())
}

// Decided tells how an order of a type was decided, and by which rules of the policy. An
// empty type is none of the catalog.
func (o *Orders) Decided(typ, code string, rules []string) {
	if typ == "" {
		typ = "unknown"
	}
	o.decided.WithLabelValues(typ, code).Inc()
	for _, rule := range rules {
		o.denied.WithLabelValues(rule).Inc()
	}
}

// Committed tells how many commits were written with one sync, and what it took.
func (o *Orders) Committed(n int, took time.Duration) {
	o.batch.Observe(float64(n))
	o.commit.Observe(took.Seconds())
}
