package router

import (
	"sync"

	"aob.dev/writ/intents"
)

// Metrics counts what the router did, one bounded label per code (AUD-02).
type Metrics struct {
	mu       sync.Mutex // guards all
	accept   int64
	refusals map[intents.Code]int64
	outcomes map[intents.Code]int64
}

func (m *Metrics) accepted() {
	m.mu.Lock()
	m.accept++
	m.mu.Unlock()
}

func (m *Metrics) refused(c intents.Code) {
	m.mu.Lock()
	if m.refusals == nil {
		m.refusals = make(map[intents.Code]int64)
	}
	m.refusals[c]++
	m.mu.Unlock()
}

func (m *Metrics) finished(c intents.Code) {
	m.mu.Lock()
	if m.outcomes == nil {
		m.outcomes = make(map[intents.Code]int64)
	}
	m.outcomes[c]++
	m.mu.Unlock()
}

// Counts are the metrics of a router since it began.
type Counts struct {
	Accepted int64                  `json:"accepted"`
	Refused  map[intents.Code]int64 `json:"refused"`
	Outcomes map[intents.Code]int64 `json:"outcomes"`
}

// Counts copies the metrics.
func (r *Router) Counts() Counts {
	m := &r.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Counts{Accepted: m.accept, Refused: make(map[intents.Code]int64), Outcomes: make(map[intents.Code]int64)}
	for k, v := range m.refusals {
		c.Refused[k] = v
	}
	for k, v := range m.outcomes {
		c.Outcomes[k] = v
	}
	return c
}
