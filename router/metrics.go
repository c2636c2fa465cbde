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
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/state"
)

// Metrics counts the router's decisions and outcomes, with one bounded label per code.
type Metrics struct {
	mu       sync.Mutex // guards all
	accept   int64
	refusals map[intents.Code]int64
	outcomes map[intents.Code]int64
	events   map[string]int64 // by event
	input    int64            // tokens that agents reported
	output   int64
	breakers map[breakers.Status]int64
	pending  state.Counters // refusals without a record of their own since the last counter record
	// recovered counts intents that an earlier process had left open.
	recovered atomic.Int64
	// Intents for another user than their grant's or key's, and of another version.
	principals, versions int64
	flood                map[string]int // of pending: refused intents by the key that signed them
}

// accepted counts an accepted intent.
func (r *Router) accepted(d *decision) {
	m := &r.metrics
	m.mu.Lock()
	m.accept++
	m.mu.Unlock()
	r.meterDecision(d)
}

// meterDecision reports a decision to the meter.
func (r *Router) meterDecision(d *decision) {
	if r.cfg.Meter != nil {
		r.cfg.Meter.Decided(d.row.Type, string(d.Code), d.PolicyIDs)
	}
}

// used counts the tokens that an intent of the router reports.
func (m *Metrics) used(env *intents.Envelope) {
	a, _ := argsOf[struct {
		Usage []catalog.Usage `json:"usage"`
	}](env)
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

// turnedDown counts a refusal of an intent without a record, whose type is not verified.
func (r *Router) turnedDown(ctx context.Context, raw []byte, err error) {
	r.metrics.unrecorded(err)
	r.refusals.log(ctx, raw, err)
	if r.cfg.Meter != nil {
		r.cfg.Meter.Decided("", string(intents.CodeOf(err)), nil)
	}
}

// unrecorded counts a refusal without a record: the next counter record includes it.
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

// mismatched counts an intent for another user than its grant's, or of another version.
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
func (r *Router) countRefusal(x *execution) {
	r.meterDecision(&x.decision)
	if x.record != nil {
		r.metrics.refused(x.Code)
		return
	}
	r.metrics.unrecorded(signed(x.env, intents.Refuse(x.Code, "", "")))
}

func (m *Metrics) finished(c intents.Code) {
	m.mu.Lock()
	count(&m.outcomes, c, 1)
	m.mu.Unlock()
}

// reported counts events of an executor of this system; those of others may have any name.
func (m *Metrics) reported(row catalog.Row, events []intents.ReportedEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range events {
		if !row.Vendor() {
			count(&m.events, f.Event, 1)
		}
	}
}

func count[K comparable, N int | int64](m *map[K]N, k K, n N) {
	if *m == nil {
		*m = make(map[K]N)
	}
	(*m)[k] += n
}

// take returns and clears what is to be recorded; nil: there is nothing.
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
	Events   map[string]int64       `json:"facts"`  // of executors of this system, by event
	Tokens   map[string]int64       `json:"tokens"` // that agents reported: input, output
	Stats    state.Stats            `json:"held"`   // a gauge
	// Breakers counts breakers by their new status.
	Breakers  map[breakers.Status]int64 `json:"breakers"`
	Recovered int64                     `json:"recovered"`
	// Principals and Versions count intents and answers of skills for another user than the
	// requester, and of an unknown version.
	Principals int64 `json:"principal_mismatches"`
	Versions   int64 `json:"version_mismatches"`
}

// Load is what a router has in progress, out of Config.Slots, ChildSlots and Waits.
type Load struct {
	Intents     int // of agents and operators, being executed
	TaskIntents int // of tasks
	Callers     int // that wait for the outcome of another caller's intent
}

// Load returns the current load.
func (r *Router) Load() Load { return Load{r.slots.Used(), r.childSlots.Used(), r.waits.Used()} }

// Counts copies the metrics.
func (r *Router) Counts() Counts {
	held := r.state.Stats()
	m := &r.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Counts{Stats: held, Recovered: m.recovered.Load(), Accepted: m.accept, Refused: make(map[intents.Code]int64), Outcomes: make(map[intents.Code]int64), Events: make(map[string]int64), Tokens: map[string]int64{"input": m.input, "output": m.output}}
	maps.Copy(c.Refused, m.refusals)
	c.Principals, c.Versions = m.principals+m.events["skill.principal_mismatch"], m.versions+m.events["envelope.version_mismatch"]
	maps.Copy(c.Outcomes, m.outcomes)
	c.Breakers = map[breakers.Status]int64{breakers.Closed: 0, breakers.HalfOpen: 0, breakers.Open: 0}
	maps.Copy(c.Breakers, m.breakers)
	maps.Copy(c.Events, m.events)
	return c
}
