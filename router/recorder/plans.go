package recorder

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// plan is the plan of an intent as of the current record; nil if it has none. A closed plan is
// without its texts.
func (r *Recorder) plan(s state.Intent) *catalog.PlanView {
	p, ok := r.state.View().Plan(s.Tenant, r.planID(s))
	if !ok {
		return nil
	}
	return &p
}

// planView is a plan as of the current record, with its texts; nil: there is none. The texts of
// closed plans are not in memory; they are read from the records.
func (r *Recorder) planView(ctx context.Context, tenant, id string) (*catalog.PlanView, error) {
	p, texts, ok := r.state.PlanWithoutTexts(tenant, id)
	if !ok {
		return nil, nil //nolint:nilnil // most intents belong to none
	}
	for _, at := range texts {
		s, err := r.intent(ctx, at)
		if err != nil {
			return nil, err
		}
		if err := state.RestoreTexts(&p, s); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

// planID of an intent: its context's, or for intents about a plan without context (an operator's
// cancel) the one in the arguments. The arguments of a refused intent may be anything.
func (r *Recorder) planID(s state.Intent) string {
	if state.OpensRun(s) {
		return r.state.RunBy(s)
	}
	if s.Context.PlanID != "" || s.Decision.Verdict == intents.Deny {
		return s.Context.PlanID
	}
	var a struct {
		PlanID string `json:"plan_id"`
		RunID  string `json:"run_id"`
	}
	if !bytes.Contains(s.Args, []byte(`"plan_id"`)) && !bytes.Contains(s.Args, []byte(`"run_id"`)) {
		return "" // mostly: it spares reading large arguments
	}
	_ = json.Unmarshal(s.Args, &a) // recorded arguments matched their schema, and are canonical
	return cmp.Or(a.PlanID, a.RunID)
}

// planDoc is the document of agent_plans: the plan, with the number of each step also under the
// name that the index requires, and the workflow of a run where a search finds it.
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

// writePlanOf adds the document of a plan as of the current record.
func (r *Recorder) writePlanOf(ctx context.Context, tenant, id string, rec storage.Record) error {
	p, err := r.planView(ctx, tenant, id)
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

// writePlan adds the plan, if there is one, fenced by the record's position. It replaces an earlier
// one of the batch: its document has the arguments of all its calls, and is made once, from the
// last one.
func (r *Recorder) writePlan(p *catalog.PlanView, rec storage.Record) {
	if p != nil {
		r.batch.plans[place{p.TenantID, p.PlanID}] = planAt{p, rec.Position}
	}
}

// planDocuments makes the documents of plans. The record of a plan without a valid document is set
// aside.
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
