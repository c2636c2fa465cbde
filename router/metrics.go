package router

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// Metrics counts what the router did, one bounded label per code.
type Metrics struct {
	mu       sync.Mutex // guards all
	accept   int64
	refusals map[intents.Code]int64
	outcomes map[intents.Code]int64
	facts    map[string]int64 // by event
	input    int64            // tokens that agents reported
	output   int64
	breakers map[state.BreakerStatus]int64
	pending  state.Counters // refusals without a record of their own since the last counter record
	// recovered are orders that an earlier process had left open.
	recovered atomic.Int64
	// Orders for another user than their grant's or key's, and of another version.
	principals, versions int64
	flood                map[string]int // of pending: refused orders by the key that signed them
}

// accepted counts an order that was.
func (r *Router) accepted(o *order) {
	m := &r.metrics
	m.mu.Lock()
	m.accept++
	m.mu.Unlock()
	r.meterDecision(o)
}

// meterDecision tells the meter how an order was decided.
func (r *Router) meterDecision(o *order) {
	if r.cfg.Meter != nil {
		r.cfg.Meter.Decided(o.row.Type, string(o.decision.Code), o.decision.PolicyIDs)
	}
}

// used counts the tokens that an order of the router reports.
func (m *Metrics) used(o *order) {
	a, _ := argsOf[struct {
		Usage []catalog.Usage `json:"usage"`
	}](o.env)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range a.Usage {
		m.input, m.output = m.input+int64(u.InputTokens), m.output+int64(u.OutputTokens)
	}
}

// refused counts a refusal that has a record of its own.
func (m *Metrics) refused(c intents.Code) {
	m.mu.Lock()
	count(&m.refusals, c, 1)
	m.mu.Unlock()
}

// maxFlood bounds how many signers are remembered between two counter records.
const maxFlood = 1024

// turnedDown counts a refusal of an order without a record, of a type that nobody vouches
// for.
func (r *Router) turnedDown(ctx context.Context, raw []byte, err error) {
	r.metrics.unrecorded(err)
	r.refusals.log(ctx, raw, err)
	if r.cfg.Meter != nil {
		r.cfg.Meter.Decided("", string(intents.CodeOf(err)), nil)
	}
}

// unrecorded counts a refusal that has none: the next counter record has it.
func (m *Metrics) unrecorded(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := intents.CodeOf(err)
	count(&m.refusals, c, 1)
	count(&m.pending.Refused, c, 1)
	var signed *signedError
	if !errors.As(err, &signed) { // of stages 1 and 2
		m.mismatched(err)
		return
	}
	if _, known := m.flood[signed.kid]; known || len(m.flood) < maxFlood {
		count(&m.flood, signed.kid, 1)
	}
}

// mismatched counts an order that is for another user than its grant, or of another version.
func (m *Metrics) mismatched(err error) {
	var refusal *intents.Refusal
	if !errors.As(err, &refusal) {
		return
	}
	switch refusal.Pointer {
	case "/actor":
		m.principals++
	case "/version":
		m.versions++
	}
}

// countRefusal counts a decision that refuses, as having a record or not.
func (r *Router) countRefusal(o *order) {
	r.meterDecision(o)
	if o.duplicate == nil && !o.repeated {
		r.metrics.refused(o.decision.Code)
		return
	}
	r.metrics.unrecorded(signed(o, intents.Refuse(o.decision.Code, "", "")))
}

func (m *Metrics) finished(c intents.Code) {
	m.mu.Lock()
	count(&m.outcomes, c, 1)
	m.mu.Unlock()
}

// reported counts facts of an executor of this system; those of others may have any name.
func (m *Metrics) reported(o *order, facts []intents.Fact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range facts {
		if !o.row.Vendor() {
			count(&m.facts, f.Event, 1)
		}
	}
}

func count[K comparable, N int | int64](m *map[K]N, k K, n N) {
	if *m == nil {
		*m = make(map[K]N)
	}
	(*m)[k] += n
}

// take empties what is to be recorded; nil: there is nothing.
func (m *Metrics) take() *state.Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending.Refused) == 0 {
		return nil
	}
	c := m.pending
	for kid, n := range m.flood {
		c.Signers = append(c.Signers, state.SignerCount{KID: kid, Refused: int64(n)})
	}
	slices.SortFunc(c.Signers, func(a, b state.SignerCount) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.KID, b.KID))
	})
	c.Signers = c.Signers[:min(len(c.Signers), maxSigners)]
	m.pending, m.flood = state.Counters{}, nil
	return &c
}

// giveBack returns what could not be recorded.
func (m *Metrics) giveBack(c *state.Counters) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for code, n := range c.Refused {
		count(&m.pending.Refused, code, n)
	}
	for _, s := range c.Signers {
		count(&m.flood, s.KID, int(s.Refused))
	}
}

// Counts are the metrics of a router since it began.
type Counts struct {
	Accepted int64                  `json:"accepted"`
	Refused  map[intents.Code]int64 `json:"refused"`
	Outcomes map[intents.Code]int64 `json:"outcomes"`
	Facts    map[string]int64       `json:"facts"`  // of executors of this system, by event
	Tokens   map[string]int64       `json:"tokens"` // that agents reported: input, output
	Held     state.Held             `json:"held"`   // a gauge
	// Breakers by the status that they have come to.
	Breakers  map[state.BreakerStatus]int64 `json:"breakers"`
	Recovered int64                         `json:"recovered"`
	// Principals and Versions are orders and answers of skills for another user than the one
	// who asks, and of a version that nobody here reads.
	Principals int64 `json:"principal_mismatches"`
	Versions   int64 `json:"version_mismatches"`
}

// Load is what a router has under way, out of Config.Slots, ChildSlots and Waits.
type Load struct {
	Orders     int // of agents and operators, that are carried out
	TaskOrders int // of tasks
	Callers    int // that wait for the outcome of an order which another one sent
}

// Load counts it.
func (r *Router) Load() Load { return Load{r.slots.taken(), r.childSlots.taken(), len(r.waits)} }

// Counts copies the metrics.
func (r *Router) Counts() Counts {
	held := r.state.Held()
	m := &r.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Counts{Held: held, Recovered: m.recovered.Load(), Accepted: m.accept, Refused: make(map[intents.Code]int64), Outcomes: make(map[intents.Code]int64), Facts: make(map[string]int64), Tokens: map[string]int64{"input": m.input, "output": m.output}}
	maps.Copy(c.Refused, m.refusals)
	c.Principals, c.Versions = m.principals+m.facts["skill.principal_mismatch"], m.versions+m.facts["envelope.version_mismatch"]
	maps.Copy(c.Outcomes, m.outcomes)
	c.Breakers = map[state.BreakerStatus]int64{state.BreakerClosed: 0, state.BreakerHalfOpen: 0, state.BreakerOpen: 0}
	maps.Copy(c.Breakers, m.breakers)
	maps.Copy(c.Facts, m.facts)
	return c
}
