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

// openOrder remembers where an order that waits for its outcome belongs.
type openOrder struct {
	id     string // intent_id
	tenant string
	plan   *plan // nil: an order of no plan
	step   int
	rev    int
	task   string // "tenant/task_id"
	typ    string
	fact   *catalog.OrderFact // nil: not told to later drivers
	lost   int                // unclean ends of routers while it was open
}

// Statuses of an order's fact beside those of outcomes.
const (
	factOpen = "open"
	factHeld = "held"
	// undelivered is a failed order that surely had no effect: nobody listened, or its
	// executor said that it may be sent again. Drivers are told failed.
	undelivered = "undelivered"
)

// dispatched remembers an order that an executor carries out until its outcome.
func (s *State) dispatched(o Order) {
	ref := s.openOrder(o)
	if ref.plan != nil && o.Decision.Effect == string(catalog.Once) {
		ref.addFact(o, factOpen)
	}
}

// held ends the task of a held order: the step waits for people.
func (s *State) held(o Order) error {
	if err := s.addHold(o); err != nil {
		return err
	}
	ref := s.openOrder(o)
	if ref.plan == nil {
		return nil
	}
	ref.addFact(o, factHeld)
	if o.Signer != intents.RoleTask {
		return nil // its context names what it likes
	}
	if t, ok := s.tasks[ref.task]; ok {
		t.ended = "held for approval"
	}
	if step := ref.plan.step(o.Context.Step); step != nil {
		step.Status = catalog.StepHeld
	}
	return nil
}

func (s *State) openOrder(o Order) *openOrder {
	ref := &openOrder{id: o.Decision.IntentID, tenant: o.Tenant, typ: o.Type}
	s.orders[o.Position] = ref
	if p, ok := s.plans[o.Tenant+"/"+o.Context.PlanID]; ok && o.Context.PlanID != "" {
		ref.plan, ref.step, ref.rev, ref.task = p, o.Context.Step, o.Context.Revision, o.Tenant+"/"+o.Context.TaskID
		p.await()
		p.byIntent[ref.id] = orderRef{o.Position, o.Context.Revision, o.Context.Step}
	}
	return ref
}

func (x *openOrder) addFact(o Order, status string) {
	x.fact = &catalog.OrderFact{
		Step: x.step, Revision: x.rev, IntentID: x.id, Type: o.Type,
		Effect: catalog.Effect(o.Decision.Effect), Args: o.shownArgs(), Status: status,
	}
	x.plan.facts = append(x.plan.facts, x.fact)
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

// EntryOf is a record as Observe wants it, for states that follow a journal which
// they do not write.
func EntryOf(r storage.Record) storage.Entry {
	e := storage.Entry{Record: r, Of: storage.Nobody}
	if r.Kind == storage.KindOutcome {
		if _, of, err := OutcomeOf(r); err == nil {
			e.Of = of
		}
	}
	if r.Kind == storage.KindTakeover {
		if t, err := readPart[Takeover](r, storage.PartTakeover); err == nil {
			e.Of = t.Of
		}
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
	return s.ended(e.Of, out, e.Record.At)
}

// ended closes an open order: memory keys become results of the step, a contract
// violation fails it, a rejected hold makes the plan replan.
func (s *State) ended(of int64, out intents.Outcome, at time.Time) error {
	ref, open := s.orders[of]
	if !open {
		return nil
	}
	delete(s.orders, of)
	dispatched := s.dropHold(of) == nil
	delete(s.holds.released, of)
	if out.Status == intents.StatusIndetermined {
		s.settle(s.unknown[ref.id].plan)
		s.unknown[ref.id] = unknown{of, ref.tenant, ref.plan, ref.fact}
	} else {
		s.settle(ref.plan)
	}
	if ref.plan == nil {
		return nil
	}
	if ref.fact != nil {
		ref.ended(out, dispatched, at)
	}
	if ref.typ != typeWriteMemory {
		return nil
	}
	switch {
	case out.Status == intents.Done:
		return ref.wrote(out)
	case out.Code == intents.ContractViolation:
		s.violated(ref, out, at)
	}
	return nil
}

// ended says in the plan's fact what became of an order.
func (x *openOrder) ended(out intents.Outcome, dispatched bool, at time.Time) {
	held := x.fact.Status == factHeld
	x.plan.unheld = x.plan.unheld || held
	x.fact.Status, x.fact.Code = factStatus(out), out.Code
	if !dispatched && out.Code != intents.ApprovalRejected { // what people have said no to is not asked for again
		x.fact.Status = undelivered
	}
	step := x.plan.step(x.step)
	if step != nil && held && step.Status == catalog.StepHeld && !final(x.plan.view.Status) && (out.Code == intents.ApprovalRejected || out.Code == intents.ApprovalExpired) {
		step.Status, step.FailureReason = catalog.StepFailed, out.Reason
		x.plan.replan(step, "rejected", out.Reason, at)
	}
}

func factStatus(out intents.Outcome) string {
	if out.Status == intents.Failed && (out.Code == intents.DispatchUnavailable || out.Retryable) {
		return undelivered
	}
	return string(out.Status)
}

// wrote makes the key of a memory a result of its step.
func (x *openOrder) wrote(out intents.Outcome) error {
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
	if step := x.plan.step(x.step); step != nil && step.Revision == x.rev && !final(x.plan.view.Status) { // a replaced step has no results, nor an ended plan
		x.plan.results[x.step] = append(x.plan.results[x.step], res.Key)
	}
	return nil
}

// violated fails the step of a write_memory that broke the step's contract.
func (s *State) violated(x *openOrder, out intents.Outcome, at time.Time) {
	t, live := s.tasks[x.task]
	step := x.plan.step(x.step)
	if !live || t.ended != "" || step == nil || step.Status != catalog.StepRunning {
		return
	}
	t.ended = "contract violation"
	step.Status, step.FailureReason, step.FinishedAt = catalog.StepFailed, out.Reason, &at
	x.plan.replan(step, "contract_violation", out.Reason, at)
}

// Takeover is the part of a takeover record: another attempt at an open order.
type Takeover struct {
	Of      int64 `json:"of"`
	Crashed bool  `json:"crashed,omitempty"` // the router before ended without being told to
}

// foldTakeover counts the unclean ends that an open order has seen.
func (s *State) foldTakeover(e storage.Entry) error {
	t, err := readPart[Takeover](e.Record, storage.PartTakeover)
	if err != nil {
		return err
	}
	if o, open := s.orders[e.Of]; open && t.Crashed {
		o.lost++
	}
	return nil
}

// Lost is how many unclean ends an open order has seen before this start's.
func (v *View) Lost(position int64) int {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	if o, open := v.s.orders[position]; open {
		return o.lost
	}
	return 0
}
