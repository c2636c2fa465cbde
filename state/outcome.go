package state

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// typeWriteMemory is the type whose outcome makes a result of a step, or ends it.
const typeWriteMemory = "write_memory"

// openOrder is an order that waits for its outcome, or whose outcome is indeterminate.
// Its plan is in the state until it has ended.
type openOrder struct {
	ID       string `json:"id"` // intent_id
	Position int64  `json:"position"`
	Tenant   string `json:"tenant"`
	Plan     string `json:"plan"` // "tenant/plan_id"; empty: an order of no plan
	Step     int    `json:"step"`
	Revision int    `json:"rev"`
	Task     string `json:"task"` // "tenant/task_id"
	Type     string `json:"type"`
	Fact     int    `json:"fact"`              // index in the plan's facts; noFact: later drivers do not see the order
	Call     int    `json:"call,omitempty"`    // its place in the plan's calls, from 1; 0: it is of no call
	Number   int    `json:"number,omitempty"`  // of the call of a client
	Breaker  string `json:"breaker,omitempty"` // of its skill server, "tenant/server"; empty: none
	Round    int64  `json:"round,omitempty"`   // of a probe
	Lost     int    `json:"lost"`              // unclean ends of routers while it was open

	Closes string `json:"closes,omitempty"` // the session that it closes; "tenant/user/session"
}

const noFact = -1

// Statuses of an order's fact beside those of outcomes.
const (
	factOpen = "open"
	factHeld = "held"
	// undelivered is a failed order that certainly had no effect: no executor received it,
	// or its executor reported it as retryable. Drivers see it as failed.
	undelivered = "undelivered"
)

// dispatched remembers an order that an executor carries out until its outcome.
func (s *State) dispatched(o Order) {
	x, p := s.openOrder(o)
	s.sent(x, o)
	if p != nil && o.Decision.Effect == string(catalog.Once) {
		p.addFact(x, o, factOpen)
	}
}

// held remembers an order that waits for people. Under earlier rules its task ended and
// its step waited.
func (s *State) held(o Order) error {
	if err := s.addHold(o); err != nil {
		return err
	}
	x, p := s.openOrder(o)
	if p == nil {
		return nil
	}
	p.addFact(x, o, factHeld)
	if o.Signer != intents.RoleTask || s.rules >= intents.RulesAgents {
		return nil // of another signer its context may name any step
	}
	if t, ok := s.tasks[x.Task]; ok {
		t.Ended = "held for approval"
	}
	if step := p.step(x.Step); step != nil {
		step.Status = catalog.StepHeld
	}
	return nil
}

// openOrder remembers an order until its outcome. p is its plan; nil: it is of none.
func (s *State) openOrder(o Order) (x *openOrder, p *plan) {
	x = &openOrder{ID: o.Decision.IntentID, Position: o.Position, Tenant: o.Tenant, Type: o.Type, Fact: noFact}
	if o.Type == typeSessionClose {
		x.Closes = o.Tenant + "/" + o.User + "/" + o.Context.SessionID
	}
	s.orders[o.Position] = x
	name, c := o.Tenant+"/"+o.Context.PlanID, o.Context
	if p = s.plans[name]; p == nil {
		return x, nil
	}
	x.Plan, x.Step, x.Revision, x.Task = name, c.Step, c.Revision, o.Tenant+"/"+c.TaskID
	p.pending++
	p.ByIntent[x.ID] = orderRef{o.Position, c.Revision, c.Step, c.Ask}
	p.nodeOrdered(o)
	p.addCall(x, o)
	p.addNumber(x, o)
	return x, p
}

func (p *plan) addFact(x *openOrder, o Order, status string) {
	f := &fact{Ask: o.Context.Ask, Occurrence: o.Context.Occurrence, Task: x.Task, Skill: o.Skill, Erased: o.Erased, OrderFact: catalog.OrderFact{
		Step: x.Step, Revision: x.Revision, IntentID: x.ID, Type: o.Type,
		Effect: catalog.Effect(o.Decision.Effect), Args: o.shownArgs(), Status: status,
	}}
	if status == factHeld && o.Signer == intents.RoleTask {
		f.HeldBy = o.Context.TaskID
	}
	if final(p.View.Status) {
		f.dropArgs()
	}
	x.Fact = len(p.Facts)
	p.Facts = append(p.Facts, f)
}

// OutcomeOf reads an outcome record; of is the position of its order, which for an
// order of the router stands right before its outcome.
func OutcomeOf(r storage.Record) (out intents.Outcome, of int64, err error) {
	if out, err = r.Outcome(); err != nil {
		return out, 0, err
	}
	if out.Of < 0 {
		out.Of = r.Position - 1
	}
	return out, out.Of, nil
}

// EntryOf is a record as Observe takes it, for states that follow a journal which
// they do not write.
func EntryOf(r storage.Record) storage.Entry {
	e := storage.Entry{Record: r, Of: storage.Nobody}
	if r.Kind != storage.KindOrder {
		f, _ := storage.Follow(r)
		e.Of = f.Of
	}
	return e
}

func (s *State) foldOutcome(e storage.Entry) error {
	if _, open := s.orders[e.Of]; !open {
		return nil
	}
	out, err := readPart[intents.Outcome](e.Record, storage.PartOutcome)
	if err != nil {
		return err
	}
	if result, there := e.Record.Parts[storage.PartResult]; there {
		out.Result = result
	}
	if outputs, there := e.Record.Parts[storage.PartOutputs]; there {
		out.Outputs = outputs
	}
	return s.ended(e.Of, out, e.Record.At)
}

// ended closes an open order: memory keys become results of the step, a contract
// violation fails it, a rejected hold makes the plan replan.
func (s *State) ended(of int64, out intents.Outcome, at time.Time) error {
	x, open := s.orders[of]
	if !open {
		return nil
	}
	p := s.plans[x.Plan]
	delete(s.orders, of)
	dispatched := s.dropHold(of) == nil
	s.answered(x, out.Transport, at)
	delete(s.holds.released, of)
	if out.Status == intents.StatusIndetermined {
		if before := s.unknown[x.ID]; before != nil {
			s.settle(s.plans[before.Plan])
		}
		s.unknown[x.ID] = x
	} else {
		s.settle(p)
	}
	if closed := s.routed[x.Closes]; closed != nil && out.Status == intents.Done {
		closed.Over = true
	}
	if p == nil {
		return nil
	}
	p.callEnded(x, out.Status)
	p.nodeEnded(x, out, dispatched)
	if factStatus(out) == undelivered {
		delete(p.Numbers, x.Number)
	}
	if x.Fact != noFact {
		p.orderEnded(x, out, dispatched, s.rules, at)
	}
	if x.Type != typeWriteMemory {
		return nil
	}
	switch {
	case out.Status == intents.Done:
		return p.addResult(x, out)
	case out.Code == intents.ContractViolation:
		s.violated(x, p, out, at)
	}
	return nil
}

// orderEnded writes the outcome of an order into the plan's fact.
func (p *plan) orderEnded(x *openOrder, out intents.Outcome, dispatched bool, rules intents.Rules, at time.Time) {
	fact := p.Facts[x.Fact]
	held := fact.Status == factHeld
	step := p.step(x.Step)
	stands := x.Step == 0 || step != nil && step.Status == catalog.StepHeld // else its driver goes on by itself
	p.Unheld = p.Unheld || held && (stands || rules < intents.RulesAgents)
	fact.Status, fact.Code = factStatus(out), out.Code
	if !dispatched && out.Code != intents.ApprovalRejected { // a rejected order is not asked for again
		fact.Status = undelivered
	}
	if step == nil || !held || step.Status != catalog.StepHeld || final(p.View.Status) {
		return
	}
	if rules >= intents.RulesAgents {
		if !p.waiting(x.Step) {
			step.Status = catalog.StepPending // whoever goes on is told
		}
		return
	}
	if out.Code == intents.ApprovalRejected || out.Code == intents.ApprovalExpired {
		step.Status, step.FailureReason = catalog.StepFailed, out.Reason
		p.replan(step, "rejected", out.Reason, at)
	}
}

func factStatus(out intents.Outcome) string {
	if out.Status == intents.Failed && (out.Code == intents.DispatchUnavailable || out.Retryable) {
		return undelivered
	}
	return string(out.Status)
}

// addResult makes the key of a memory a result of its step.
func (p *plan) addResult(x *openOrder, out intents.Outcome) error {
	if out.Result == nil {
		return nil // erased, as of a plan that has ended
	}
	// The key alone: Go reads fewer numbers as integers than the result's schema.
	var res struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(out.Result, &res); err != nil {
		return err
	}
	if step := p.step(x.Step); step != nil && step.Revision == x.Revision && !final(p.View.Status) { // a replaced step has no results, nor an ended plan
		p.Results[x.Step] = append(p.Results[x.Step], res.Key)
	}
	return nil
}

// violated fails the step of a write_memory that broke the step's contract.
func (s *State) violated(x *openOrder, p *plan, out intents.Outcome, at time.Time) {
	t, live := s.tasks[x.Task]
	step := p.step(x.Step)
	if !live || t.Ended != "" || step == nil || step.Status != catalog.StepRunning {
		return
	}
	s.endTask(t, "contract violation", "failed", nil, at)
	if t.Ask != "" {
		return // the task that asked goes on
	}
	if p.Run != nil {
		p.nodeFailed(step, out.Reason, at, at)
		p.tryAgain(step)
		return
	}
	step.Status, step.FailureReason, step.FinishedAt = catalog.StepFailed, out.Reason, &at
	p.replan(step, "contract_violation", out.Reason, at)
}

// Takeover is the part of a takeover record: another attempt at an open order.
type Takeover struct {
	Of      int64 `json:"of"`
	Crashed bool  `json:"crashed,omitempty"` // the router before did not shut down cleanly
}

// foldTakeover counts the unclean ends that an open order has seen.
func (s *State) foldTakeover(e storage.Entry) error {
	t, err := readPart[Takeover](e.Record, storage.PartTakeover)
	if err != nil {
		return err
	}
	if o, open := s.orders[e.Of]; open && t.Crashed {
		o.Lost++
	}
	return nil
}

// Lost is how many unclean ends an open order has seen before this start's.
func (v *View) Lost(position int64) int {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	if o, open := v.s.orders[position]; open {
		return o.Lost
	}
	return 0
}
