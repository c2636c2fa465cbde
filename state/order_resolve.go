package state

import (
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// unknown is an indeterminate order that an operator may resolve.
type unknown struct {
	position int64
	tenant   string
	plan     *plan
	fact     *catalog.OrderFact
}

// orderResolve is an operator's word about how an indeterminate order ended.
var orderResolve = operators(TypeResolve,
	func(v *View, o Order, a catalog.OrderResolve) (Effect, error) {
		v.rely(SubjectOrder(a.IntentID))
		x, ok := v.s.unknown[a.IntentID]
		if !ok || (x.tenant != o.Tenant && o.Tenant != systemTenant) {
			return Effect{}, illegal("/intent/args/intent_id", "no indeterminate order of this tenant has this intent_id")
		}
		touches := []storage.Subject{SubjectOrder(a.IntentID)}
		if x.fact != nil {
			touches = append(touches, SubjectEffects(x.tenant, x.plan.view.PlanID, x.fact.Step))
		}
		return v.relyOn(accepted(touches...))
	},
	func(s *State, _ Order, a catalog.OrderResolve) error {
		x, ok := s.unknown[a.IntentID]
		if !ok {
			return fmt.Errorf("order.resolve of an order that is not indeterminate")
		}
		delete(s.unknown, a.IntentID)
		s.settled[x.position] = a.Status
		s.settle(x.plan)
		if x.fact != nil {
			x.fact.Status, x.fact.Code = string(intents.Done), intents.OK
			if a.Status == string(intents.Failed) {
				x.fact.Status, x.fact.Code = undelivered, intents.Indeterminate
			}
		}
		return nil
	})

// Resolve puts an operator's word in the place of an indeterminate outcome of the
// order at a position: what surely failed gives its key back, what was done is done
// and never repeated.
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
