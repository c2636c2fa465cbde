package router

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// decidedSources are those by which the intent was decided, if a task signed it.
func (d *decision) decidedSources() []intents.Source {
	if d.inputs.Task != nil {
		return d.inputs.Task.Sources
	}
	return d.sources()
}

// sources are those of the intent's plan, and of what it names.
func (d *decision) sources() []intents.Source {
	var refs []string
	for _, from := range catalog.InputsIn(d.row, d.env.DecodedArgs()) {
		ref := from.Ref
		if d.inputDigest(from.Pointer) == "" {
			ref = state.Missing
		}
		refs = append(refs, ref)
	}
	return d.view.Sources(d.env.Principal().Tenant, d.env.Context().PlanID, refs, d.now)
}

// stored are the sources of what the intent stores, if its executor stores something: its plan may
// have read more since the decision.
func (r *Router) stored(d *decision) []intents.Source {
	c := d.env.Context()
	if !d.row.Stores() || c.PlanID == "" {
		return nil
	}
	return intents.JoinSources(d.decidedSources(), r.state.SourcesOf(d.env.Principal().Tenant, c.PlanID))
}

// read are the sources that the plan of a dispatched intent has read by it, as far as they are new:
// the skill's own, those of what it named, and what the executor reports of stored content.
func (r *Router) read(d *decision, reported []intents.Source) []intents.Source {
	tenant, plan := d.env.Principal().Tenant, d.env.Context().PlanID
	if plan == "" {
		return nil
	}
	sets := [][]intents.Source{reported, d.decidedSources()}
	if d.pin != nil && state.AsksServer(d.env.Type()) {
		sets = append(sets, []intents.Source{d.pin.Input().Source()})
	}
	if of := d.env.StringArg("plan_id"); d.env.Type() == "plan.get" && of != plan {
		sets = append(sets, r.state.SourcesOf(tenant, of))
	}
	known, all := r.state.SourcesOf(tenant, plan), intents.JoinSources(sets...)
	if intents.CoverSources(known, all) {
		return nil
	}
	return all
}
