package state

import (
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// intentResolve is an operator's statement of how an indeterminate intent ended.
var intentResolve = operators(TypeResolve,
	func(v *View, o Intent, a catalog.IntentResolve) (Effect, error) {
		v.addRead(SubjectIntent(a.IntentID))
		x, ok := v.s.unknown[a.IntentID]
		if !ok || (x.Tenant != o.Tenant && o.Tenant != systemTenant) {
			return Effect{}, illegal("/intent/args/intent_id", "no indeterminate intent of this tenant has this intent_id")
		}
		writes := []storage.Subject{SubjectIntent(a.IntentID)}
		if x.HistoryIndex != notInHistory {
			plan := v.s.plans[x.Plan].View.PlanID
			writes = append(writes, SubjectEffects(x.Tenant, plan, x.Step), subjectUnknown(x.Tenant, plan, x.Step))
		}
		return v.addWritesToReads(accepted(writes...))
	},
	func(s *State, _ Intent, a catalog.IntentResolve) error {
		x, ok := s.unknown[a.IntentID]
		if !ok {
			return fmt.Errorf("intent.resolve of an intent that is not indeterminate")
		}
		delete(s.unknown, a.IntentID)
		s.resolved[x.Position] = a.Status
		if len(s.resolved) > maxResolved {
			delete(s.resolved, slices.Min(slices.Collect(maps.Keys(s.resolved))))
		}
		p := s.plans[x.Plan]
		s.intentEnded(p)
		if p != nil {
			p.callEnded(x, intents.Status(a.Status))
			p.nodeResolved(x, a.Status)
		}
		if x.HistoryIndex != notInHistory {
			past := p.IntentHistory[x.HistoryIndex]
			past.Status, past.Code = string(intents.Done), intents.OK
			if a.Status == string(intents.Failed) {
				past.Status, past.Code = undelivered, intents.Indeterminate
			}
		}
		return nil
	})

// maxResolved bounds the number of resolved intents that are retained. An older one is
// indeterminate again for anyone who sends it again or reads it: none of it is executed.
const maxResolved = 1 << 14

// Resolve replaces the indeterminate outcome of the intent at a position with the operator's
// statement: a failed intent frees its key, a done intent is never repeated.
func (s *State) Resolve(position int64, out *intents.Outcome) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch s.resolved[position] {
	case string(intents.Done):
		out.Status, out.Code, out.Reason = intents.Done, intents.OK, "resolved as done by an operator"
	case string(intents.Failed):
		out.Status, out.Code, out.Retryable = intents.Failed, intents.Indeterminate, true
		out.Reason = "resolved as failed by an operator"
	}
}
