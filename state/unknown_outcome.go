package state

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// UnknownOutcome finds, for an intent of a step that acts once by a skill, another one of the
// same step and skill with an unknown outcome: it is indeterminate, or it is being executed and
// its task has ended. Until that outcome is known the intent may not act, since it may repeat
// what the other one seems to have left undone. nil if there is none. An intent that is itself
// pending approval has done nothing, and blocks no other.
func (v *View) UnknownOutcome(o *Intent) *catalog.PastIntent {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	c := o.Context
	p := v.s.plans[o.Tenant+"/"+c.PlanID]
	if o.Decision.Effect != string(catalog.Once) || o.Skill == "" || c.Step == 0 || p == nil {
		return nil
	}
	if p.ofClient() { // calls are made in parallel, and end
		v.addRead(subjectUnknown(o.Tenant, c.PlanID, c.Step))
	} else {
		v.addRead(SubjectEffects(o.Tenant, c.PlanID, c.Step))
	}
	for _, f := range p.IntentHistory {
		if f.Effect != catalog.Once || f.Skill != o.Skill || f.Step != c.Step || f.Revision != c.Revision {
			continue
		}
		_, waits := v.s.holds.byID[f.IntentID]
		t, late := v.s.tasks[f.Task]
		if late = late && f.Task != o.Tenant+"/"+c.TaskID && (f.Status == statusOpen || f.Status == statusHeld && !waits); late {
			v.addRead(SubjectTask(t.Tenant, t.ID))
			late = t.Ended != ""
		}
		if late || f.Status == string(intents.StatusIndetermined) {
			return &f.PastIntent
		}
	}
	return nil
}

// AwaitingOutcome lists the intents that are held because of such another one, oldest first.
func (v *View) AwaitingOutcome() []Hold {
	return v.holdsWhere(func(h *Hold) bool { return h.Terms.AwaitsOutcome() })
}
