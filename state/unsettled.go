package state

import (
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Unsettled finds, for an order of a step that acts once by a skill, an earlier one of the
// step and skill of which nobody knows what became: it is indeterminate, or it is being
// carried out and its task has ended. Until that is known no other one may act, since it
// may be made because of what the earlier one seems to have left undone. nil: there is none.
// An order that waits for people itself has done nothing, and stands in nobody's way.
func (v *View) Unsettled(o *Order) *catalog.OrderFact {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return v.unsettled(o)
}

func (v *View) unsettled(o *Order) *catalog.OrderFact {
	c := o.Context
	p := v.s.plans[o.Tenant+"/"+c.PlanID]
	if v.s.rules < intents.RulesAsks || o.Decision.Effect != string(catalog.Once) || o.Skill == "" || c.Step == 0 || p == nil {
		return nil
	}
	v.rely(SubjectEffects(o.Tenant, c.PlanID, c.Step))
	for _, f := range p.Facts {
		if f.Effect != catalog.Once || f.Skill != o.Skill || f.Step != c.Step || f.Revision != c.Revision {
			continue
		}
		if f.Status == string(intents.StatusIndetermined) || v.late(f, o) {
			return &f.OrderFact
		}
	}
	return nil
}

// late says whether an order is being carried out whose task, another one than that of a
// given order, has ended.
func (v *View) late(f *fact, o *Order) bool {
	_, waits := v.s.holds.byID[f.IntentID]
	t, there := v.s.tasks[f.Task]
	if f.Status != factOpen && f.Status != factHeld || waits || !there || f.Task == o.Tenant+"/"+o.Context.TaskID {
		return false
	}
	v.rely(SubjectTask(t.Tenant, t.ID))
	return t.Ended != ""
}

// Settled lists the orders on hold for which that is known by now, and which people have
// approved where they have to, oldest first. No decision may rely on it.
func (s *State) Settled() []Hold {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := s.view()
	var out []Hold
	for _, h := range s.holds.waiting {
		if !h.Terms.Unsettled() || v.unsettled(&h.Order) != nil {
			continue
		}
		if counted := v.counted(*h); len(counted.Missing()) == 0 {
			out = append(out, counted)
		}
	}
	slices.SortFunc(out, func(a, b Hold) int { return int(a.Position - b.Position) })
	return out
}
