package state

import (
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Types that are asked for by name.
const (
	TypePlanOpen     = "plan.open"
	TypePlan         = "plan"
	TypePlanClose    = "plan.close"
	TypeStepFinish   = "step.finish"
	typeSessionClose = "session.close"
	TypeCancel       = "cancel"
	TypeApprove      = "hitl.approve"
	TypeAdminPut     = "admin.put"
	TypePolicyPush   = "policy.push"
	TypeRegistryPush = "registry.push"
	TypeSkillApprove = "skill.approve"
	TypeSchedulePut  = "schedule.put"
	TypeScheduleList = "schedule.list"
	TypeGrantRevoke  = "grant.revoke"
	TypeResolve      = "order.resolve"
	TypeErase        = "record.erase"

	TypeWorkflowStart = "workflow.start"
	TypeRunReplay     = "run.replay"
	TypeGraphPatch    = "graph.patch"
	typeNodeSkip      = "node.skip"
)

// Move is one type of order that the router carries out itself. The catalog has a
// row of that type whose executor is the router.
type Move struct {
	Type string
	// judge says whether the order is legal, and its effect. It relies on all that it
	// reads (View), so that a commit can assert that nothing of it has changed.
	judge func(v *View, o Order) (Effect, error)
	// apply is the effect of a legal order on the state. An error means that no router
	// can have judged the order legal.
	apply func(s *State, o Order) error
	// texts are the arguments that the state does not need (keepsAllBut).
	texts []string
	// restore puts the texts of an order back into a plan that has dropped them (dropTexts);
	// nil: a plan shows none of its texts.
	restore func(p *catalog.PlanView, o Order) error
	// administers: other orders of administration rely on what it changes.
	administers bool
}

// Effect is what a legal order does beside its own record.
type Effect struct {
	Result  any               // that the order is answered with
	Touches []storage.Subject // what it changes
}

// accepted is the effect of an order whose result is only that it was accepted.
func accepted(touches ...storage.Subject) Effect {
	return Effect{catalog.Accepted{Accepted: true}, touches}
}

// move makes a Move of functions over the arguments of its type.
func move[A any](typ string, judge func(v *View, o Order, a A) (Effect, error), apply func(s *State, o Order, a A) error) Move {
	return Move{
		Type: typ,
		judge: func(v *View, o Order) (Effect, error) {
			a, err := argsOf[A](o)
			if err != nil {
				return Effect{}, err
			}
			return judge(v, o, a)
		},
		apply: func(s *State, o Order) error {
			a, err := argsOf[A](o)
			if err != nil {
				return err
			}
			return apply(s, o, a)
		},
	}
}

// restores says how the texts of such orders come back into a plan.
func (m Move) restores(restore func(p *catalog.PlanView, o Order) error) Move {
	m.restore = restore
	return m
}

// argsOf reads arguments that were held to the schema of their type before.
func argsOf[A any](o Order) (a A, err error) {
	return a, json.Unmarshal(o.Args, &a)
}

var allMoves = []Move{
	workflowStart, nodeSkip, graphPatch, runReplay,
	planOpen, planClaim, planRevise, stepOpen, stepFinish, planClose, usageReport, cancel,
	hitlApprove, approvalAsk,
	registryPush, agentGet, agentAsk,
	schedulePut, scheduleList, scheduleDelete, action,
	keyPut, adminPut, skillApprove, policyPush, grantRevoke, orderResolve, recordErase,
}

var moves = byType(allMoves)

func byType(list []Move) map[string]Move {
	out := make(map[string]Move, len(list))
	for _, m := range list {
		out[m.Type] = m
	}
	return out
}

// Has says whether there is a Move for a type.
func Has(typ string) bool {
	_, ok := moves[typ]
	return ok
}

// Administers says whether orders of a type are orders of administration: others of them
// rely on what they change, such as a tenant's directory data.
func Administers(typ string) bool { return moves[typ].administers }

// Judge says whether an order of the router is legal on the state as it is, and its
// effect. What it relied on is added to the view. Rows of the directory may name what
// these types know. Times in the effect's result are those of the decision. The error
// is a *intents.Refusal.
func (v *View) Judge(o Order, types *catalog.Catalog) (Effect, error) {
	m, ok := moves[o.Type]
	if !ok {
		return Effect{}, fmt.Errorf("state: no move for %s", o.Type)
	}
	v.types = types
	o.At = o.Now // its record may be timed later, where the clock stepped back
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	e, err := m.judge(v, o)
	if err == nil {
		err = v.settled(o) // last: a request that opened a plan before is told which one
	}
	return e, err
}

// timedID checks the age of an id that an order brings. It is not checked again when
// people release a held order, since that may take a day.
func (v *View) timedID(o Order, kind, id, pointer string) error {
	if v.s.rules < intents.RulesTimed || o.Released {
		return nil
	}
	if reason := intents.CheckTimedID(kind, id, o.Now); reason != "" {
		return illegal(pointer, reason)
	}
	return nil
}

// illegal is the refusal of an order that the state does not allow.
func illegal(pointer, reason string) error {
	return intents.Refuse(intents.MalformedArgs, pointer, reason)
}
