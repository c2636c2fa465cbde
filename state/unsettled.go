package state

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Unsettled finds, for an order of a step that acts once by a skill, another one of step and
// skill of which nobody knows what became: it is indeterminate, or is being carried out and
// its task has ended. Until that is known the order may not act, since it may be made because
// of what the other one seems to have left undone. nil: there is none. An order that waits for
// people itself has done nothing, and stands in nobody's way.
func (v *View) Unsettled(o *Order) *catalog.OrderFact {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	c := o.Context
	p := v.s.plans[o.Tenant+"/"+c.PlanID]
	if v.s.rules < intents.RulesAsks || o.Decision.Effect != string(catalog.Once) || o.Skill == "" || c.Step == 0 || p == nil {
		return nil
	}
	if p.ofClient() { // calls are made side by side, and end
		v.rely(subjectUnknown(o.Tenant, c.PlanID, c.Step))
	} else {
		v.rely(SubjectEffects(o.Tenant, c.PlanID, c.Step))
	}
	for _, f := range p.Facts {
		if f.Effect != catalog.Once || f.Skill != o.Skill || f.Step != c.Step || f.Revision != c.Revision {
			continue
		}
		_, waits := v.s.holds.byID[f.IntentID]
		t, late := v.s.tasks[f.Task]
		if late = late && f.Task != o.Tenant+"/"+c.TaskID && (f.Status == factOpen || f.Status == factHeld && !waits); late {
			v.rely(SubjectTask(t.Tenant, t.ID))
			late = t.Ended != ""
		}
		if late || f.Status == string(intents.StatusIndetermined) {
			return &f.OrderFact
		}
	}
	return nil
}

// AwaitSettled lists the orders that were held because of such another one, oldest first.
func (v *View) AwaitSettled() []Hold {
	return v.holdsWhere(func(h *Hold) bool { return h.Terms.Unsettled() })
}
