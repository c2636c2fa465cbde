package state

import (
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// orderResolve is an operator's statement of how an indeterminate order ended.
var orderResolve = operators(TypeResolve,
	func(v *View, o Order, a catalog.OrderResolve) (Effect, error) {
		v.rely(SubjectOrder(a.IntentID))
		x, ok := v.s.unknown[a.IntentID]
		if !ok || (x.Tenant != o.Tenant && o.Tenant != systemTenant) {
			return Effect{}, illegal("/intent/args/intent_id", "no indeterminate order of this tenant has this intent_id")
		}
		touches := []storage.Subject{SubjectOrder(a.IntentID)}
		if x.Fact != noFact {
			plan := v.s.plans[x.Plan].View.PlanID
			touches = append(touches, SubjectEffects(x.Tenant, plan, x.Step), subjectUnknown(x.Tenant, plan, x.Step))
		}
		return v.relyOn(accepted(touches...))
	},
	func(s *State, _ Order, a catalog.OrderResolve) error {
		x, ok := s.unknown[a.IntentID]
		if !ok {
			return fmt.Errorf("order.resolve of an order that is not indeterminate")
		}
		delete(s.unknown, a.IntentID)
		s.settled[x.Position] = a.Status
		if len(s.settled) > maxSettled {
			delete(s.settled, slices.Min(slices.Collect(maps.Keys(s.settled))))
		}
		p := s.plans[x.Plan]
		s.settle(p)
		if p != nil {
			p.callEnded(x, intents.Status(a.Status))
			p.nodeResolved(x, a.Status)
		}
		if x.Fact != noFact {
			fact := p.Facts[x.Fact]
			fact.Status, fact.Code = string(intents.Done), intents.OK
			if a.Status == string(intents.Failed) {
				fact.Status, fact.Code = undelivered, intents.Indeterminate
			}
		}
		return nil
	})

// maxSettled bounds what is remembered of resolved orders. An older one is indeterminate again
// for who sends it once more or reads it: nothing of it is carried out.
const maxSettled = 1 << 14

// Resolve replaces the indeterminate outcome of the order at a position with the
// operator's statement: an order that failed frees its key, one that is done is never
// repeated.
func (s *State) Resolve(position int64, out *intents.Outcome) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch s.settled[position] {
	case string(intents.Done):
		out.Status, out.Code, out.Reason = intents.Done, intents.OK, "resolved as done by an operator"
	case string(intents.Failed):
		out.Status, out.Code, out.Retryable = intents.Failed, intents.Indeterminate, true
		out.Reason = "resolved as failed by an operator"
	}
}
