package router

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// erasable says whether the order may be taken out of its record one day: nothing
// in the log rests on a refused one, nor on one that an executor carries out. Its
// summary stays in its place.
func (o *order) erasable() bool {
	return o.decision.Verdict == intents.Deny || o.row.Executor != catalog.ExecutorRouter
}

// readSummary reads what is left of an order that was erased.
func (o *decided) readSummary(r storage.Record) error {
	s, err := storage.ReadSummary(r.Parts)
	if err != nil {
		return err
	}
	var f struct {
		Skill struct {
			Name string `json:"name"`
		} `json:"skill"`
	}
	if err := json.Unmarshal(r.Parts[storage.PartFacts], &f); err != nil {
		return err
	}
	o.args, err = json.Marshal(struct { // names that projections keep
		PlanID string `json:"plan_id,omitempty"`
		Skill  string `json:"skill,omitempty"`
	}{s.PlanID, f.Skill.Name})
	o.typ, o.user, o.tenant, o.ctx, o.erased = s.Type, s.User, s.Tenant, s.Context, true
	return err
}

// shownArgs are what drivers of the plan are told of the arguments.
func (o *decided) shownArgs() json.RawMessage {
	if o.erased {
		return json.RawMessage(`{}`)
	}
	return o.args
}
