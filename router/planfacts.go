package router

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// foldOpen remembers a dispatched order until its outcome.
func (d *Directory) foldOpen(o decided) {
	ref := &openOrder{id: o.decision.IntentID, tenant: o.tenant, typ: o.typ}
	d.orders[o.position] = ref
	p, ok := d.plans[o.tenant+"/"+o.ctx.PlanID]
	if !ok || o.ctx.PlanID == "" {
		return
	}
	*ref = openOrder{id: ref.id, tenant: o.tenant, plan: p, step: o.ctx.Step, rev: o.ctx.Revision, task: o.tenant + "/" + o.ctx.TaskID, typ: o.typ}
	p.byIntent[o.decision.IntentID] = orderRef{o.position, o.ctx.Revision, o.ctx.Step}
	if o.decision.Effect == string(catalog.Once) {
		ref.fact = &catalog.OrderFact{
			Step: o.ctx.Step, Revision: o.ctx.Revision, IntentID: o.decision.IntentID, Type: o.typ,
			Effect: catalog.Once, Args: o.shownArgs(), Status: "open",
		}
		p.facts = append(p.facts, ref.fact)
	}
}

// foldHold ends the task of a held order: the step waits for people.
func (d *Directory) foldHold(o decided) error {
	if err := d.addHold(o); err != nil {
		return err
	}
	p, ok := d.plans[o.tenant+"/"+o.ctx.PlanID]
	if !ok || o.ctx.PlanID == "" {
		d.orders[o.position] = &openOrder{id: o.decision.IntentID, tenant: o.tenant, typ: o.typ}
		return nil
	}
	fact := &catalog.OrderFact{
		Step: o.ctx.Step, Revision: o.ctx.Revision, IntentID: o.decision.IntentID, Type: o.typ,
		Effect: catalog.Effect(o.decision.Effect), Args: o.shownArgs(), Status: "held",
	}
	p.facts = append(p.facts, fact)
	p.byIntent[o.decision.IntentID] = orderRef{o.position, o.ctx.Revision, o.ctx.Step}
	d.orders[o.position] = &openOrder{id: o.decision.IntentID, tenant: o.tenant, plan: p, step: o.ctx.Step, rev: o.ctx.Revision, task: o.tenant + "/" + o.ctx.TaskID, typ: o.typ, fact: fact}
	if o.role != intents.RoleTask {
		return nil // its context names what it likes
	}
	if t, ok := d.tasks[o.tenant+"/"+o.ctx.TaskID]; ok {
		t.ended = "held for approval"
	}
	if s := p.step(o.ctx.Step); s != nil {
		s.Status = catalog.StepHeld
	}
	return nil
}

// foldOutcome closes an open order: memory keys become results of the step, a
// contract violation fails it, a rejected hold makes the plan replan.
func (d *Directory) foldOutcome(e storage.Entry) error {
	ref, ok := d.orders[e.Of]
	if !ok {
		return nil
	}
	delete(d.orders, e.Of)
	dispatched := d.dropHold(e.Of) == nil
	delete(d.holds.released, e.Of)
	var out intents.Outcome
	if err := json.Unmarshal(e.Record.Parts[storage.PartOutcome], &out); err != nil {
		return err
	}
	if out.Status == intents.StatusIndetermined {
		d.unknown[ref.id] = unknown{e.Of, ref.tenant, ref.plan, ref.fact}
	}
	if ref.plan == nil {
		return nil
	}
	if ref.fact != nil {
		held := ref.fact.Status == "held"
		ref.plan.unheld = ref.plan.unheld || held
		ref.fact.Status, ref.fact.Code = factStatus(out), out.Code
		if !dispatched && out.Code != intents.ApprovalRejected { // what people have said no to is not asked for again
			ref.fact.Status = undelivered
		}
		s := ref.plan.step(ref.step)
		if s != nil && held && s.Status == catalog.StepHeld && !final(ref.plan.view.Status) && (out.Code == intents.ApprovalRejected || out.Code == intents.ApprovalExpired) {
			s.Status, s.FailureReason = catalog.StepFailed, out.Reason
			replan(ref.plan, s, "rejected", out.Reason, e.Record.At)
		}
	}
	if ref.typ != "write_memory" {
		return nil
	}
	switch {
	case out.Status == intents.Done:
		// The key alone: Go reads fewer numbers as integers than the result's schema.
		var res struct {
			Key string `json:"key"`
		}
		result, there := e.Record.Parts[storage.PartResult]
		if !there {
			result = out.Result
		}
		if result == nil {
			return nil // erased, as of a plan that has ended
		}
		if err := json.Unmarshal(result, &res); err != nil {
			return err
		}
		if s := ref.plan.step(ref.step); s != nil && s.Revision == ref.rev { // a replaced step has no results
			ref.plan.results[ref.step] = append(ref.plan.results[ref.step], res.Key)
		}
	case out.Code == intents.ContractViolation:
		t, live := d.tasks[ref.task]
		s := ref.plan.step(ref.step)
		if !live || t.ended != "" || s == nil || s.Status != catalog.StepRunning {
			return nil
		}
		t.ended = "contract violation"
		at := e.Record.At
		s.Status, s.FailureReason, s.FinishedAt = catalog.StepFailed, out.Reason, &at
		replan(ref.plan, s, "contract_violation", out.Reason, at)
	}
	return nil
}

// undelivered is the status of a failed order that surely had no effect: nobody
// listened, or its executor said that it may be sent again. Drivers are told failed.
const undelivered = "undelivered"

func factStatus(out intents.Outcome) string {
	if out.Status == intents.Failed && (out.Code == intents.DispatchUnavailable || out.Retryable) {
		return undelivered
	}
	return string(out.Status)
}
