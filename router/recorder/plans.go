package recorder

import (
	"cmp"
	"context"
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// plan is the plan of an order as folded now; nil if it belongs to none. A closed one
// is without its words.
func (r *Recorder) plan(s state.Order) *catalog.PlanView {
	p, ok := r.fold.View().Plan(s.Tenant, r.planID(s))
	if !ok {
		return nil
	}
	return &p
}

// told is a plan as folded now, with its words; nil: there is none. The words of
// closed plans are not kept in memory but read from the records.
func (r *Recorder) told(ctx context.Context, tenant, id string) (*catalog.PlanView, error) {
	p, texts, ok := r.fold.PlanWithoutTexts(tenant, id)
	if !ok {
		return nil, nil //nolint:nilnil // most orders belong to none
	}
	for _, at := range texts {
		s, err := r.order(ctx, at)
		if err != nil {
			return nil, err
		}
		if err := state.RestoreTexts(&p, s); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

// planID of an order: its context's, or for orders about a plan without
// context (an operator's cancel) the one in the arguments. The arguments of a
// refused order may be anything.
func (r *Recorder) planID(s state.Order) string {
	if state.OpensRun(s) {
		return r.fold.RunBy(s)
	}
	if s.Context.PlanID != "" || s.Decision.Verdict == intents.Deny {
		return s.Context.PlanID
	}
	var a struct {
		PlanID string `json:"plan_id"`
		RunID  string `json:"run_id"`
	}
	_ = json.Unmarshal(s.Args, &a) // recorded arguments matched their schema
	return cmp.Or(a.PlanID, a.RunID)
}

// planDoc is the document of agent_plans: the plan, with the number of each step
// under the name that the index requires too, and the workflow of a run where a search
// finds it.
type planDoc struct {
	*catalog.PlanView
	Steps      []stepDoc `json:"steps"`
	WorkflowID string    `json:"workflow_id,omitempty"`
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
	if p.Run != nil {
		d.WorkflowID = p.Run.WorkflowID
	}
	return d
}

// writePlanOf gathers the document of a plan as it is told now.
func (r *Recorder) writePlanOf(ctx context.Context, tenant, id string, rec storage.Record) error {
	p, err := r.told(ctx, tenant, id)
	if err == nil {
		r.writePlan(p, rec)
	}
	return err
}

// planAt is a plan as a record left it.
type planAt struct {
	*catalog.PlanView
	position int64
}

// writePlan gathers the plan, if there is one, fenced by the record's position. It takes the
// place of an earlier one of the batch: its document has the arguments of all its calls, and is
// made once, of the last one.
func (r *Recorder) writePlan(p *catalog.PlanView, rec storage.Record) {
	if p != nil {
		r.batch.plans[place{p.TenantID, p.PlanID}] = planAt{p, rec.Position}
	}
}

// planDocuments makes the documents of plans. The record of one that is none is set aside.
func (r *Recorder) planDocuments(ctx context.Context, plans map[place]planAt) (map[place]storage.Document, error) {
	out := make(map[place]storage.Document, len(plans))
	for at, p := range plans {
		body, err := json.Marshal(documentOf(p.PlanView))
		if err != nil {
			err = r.setAside(ctx, p.position, err)
		} else {
			out[at] = storage.Document{ID: p.PlanID, Position: p.position, Body: body}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
