package recorder

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// plan is the plan of an order as folded now; nil if it belongs to none.
func (r *Recorder) plan(s router.Summary) *catalog.PlanView {
	p, ok := r.fold.View().Plan(s.Tenant, planID(s))
	if !ok {
		return nil
	}
	return &p
}

// planID of an order: its context's, or for orders about a plan without
// context (an operator's cancel) the one in the arguments. The arguments of a
// refused order may be anything.
func planID(s router.Summary) string {
	if s.Context.PlanID != "" || s.Decision.Verdict == intents.Deny {
		return s.Context.PlanID
	}
	var a struct {
		PlanID string `json:"plan_id"`
	}
	_ = json.Unmarshal(s.Args, &a) // recorded arguments matched their schema
	return a.PlanID
}

// planDoc is the document of agent_plans: the plan, with the number of each step
// under the name of the blueprint's mapping too (PLN-09, STO-07).
type planDoc struct {
	*catalog.PlanView
	Steps []stepDoc `json:"steps"`
}

type stepDoc struct {
	catalog.StepView
	Index int `json:"step_index"`
}

func documentOf(p *catalog.PlanView) planDoc {
	d := planDoc{PlanView: p, Steps: make([]stepDoc, len(p.Steps))}
	for i, s := range p.Steps {
		d.Steps[i] = stepDoc{s, s.Step}
	}
	return d
}

// writePlan gathers the plan's document, fenced by the record's position. It
// takes the place of an earlier one of the batch.
func (r *Recorder) writePlan(s router.Summary, rec storage.Record) error {
	return r.writePlanOf(s.Tenant, planID(s), rec)
}

func (r *Recorder) writePlanOf(tenant, id string, rec storage.Record) error {
	p, ok := r.fold.View().Plan(tenant, id)
	if !ok {
		return nil
	}
	body, err := marshal(documentOf(&p))
	if err != nil {
		return err
	}
	r.batch.plans[place{tenant, p.PlanID}] = storage.Document{ID: p.PlanID, Position: rec.Position, Body: body}
	return nil
}
