package state

import (
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Types that the code refers to by name.
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
	TypeResolve      = "intent.resolve"
	TypeErase        = "record.erase"
	TypeUserErase    = "user.erase"

	TypeWorkflowStart = "workflow.start"
	TypeRunReplay     = "run.replay"
	TypeGraphPatch    = "graph.patch"
	typeNodeSkip      = "node.skip"
)

// Transition is one type of intent that the router executes itself. The catalog has a row of
// that type whose executor is the router.
type Transition struct {
	Type string
	// judge decides whether the intent is legal, and returns its effect. Everything that it
	// reads (View) is added to the reads, so that a commit can assert that none of it has
	// changed.
	judge func(v *View, o Intent) (Effect, error)
	// apply applies a legal intent to the state. An error means that no router can have judged
	// the intent legal.
	apply func(s *State, o Intent) error
	// texts are the arguments that the state does not need (retainsAllBut).
	texts []string
	// restore restores the texts of an intent in a plan that has dropped them (dropTexts); nil:
	// a plan shows none of its texts.
	restore func(p *catalog.PlanView, o Intent) error
	// administers: other administrative intents read what it changes.
	administers bool
}

// Effect is what a legal intent does apart from its own record.
type Effect struct {
	Result any               // of the intent
	Writes []storage.Subject // what it changes
}

// accepted is the effect of an intent whose result is only that it was accepted.
func accepted(writes ...storage.Subject) Effect {
	return Effect{catalog.Ack{Accepted: true}, writes}
}

// newTransition makes a Transition of functions over the arguments of its type.
func newTransition[A any](typ string, judge func(v *View, o Intent, a A) (Effect, error), apply func(s *State, o Intent, a A) error) Transition {
	return Transition{
		Type: typ,
		judge: func(v *View, o Intent) (Effect, error) {
			a, err := ArgsOf[A](o)
			if err != nil {
				return Effect{}, err
			}
			return judge(v, o, a)
		},
		apply: func(s *State, o Intent) error {
			a, err := ArgsOf[A](o)
			if err != nil {
				return err
			}
			return apply(s, o, a)
		},
	}
}

// restores sets how the texts of such intents are restored in a plan.
func (m Transition) restores(restore func(p *catalog.PlanView, o Intent) error) Transition {
	m.restore = restore
	return m
}

// ArgsOf reads arguments that were validated against the schema of their type.
func ArgsOf[A any](o Intent) (a A, err error) {
	return a, json.Unmarshal(o.Args, &a)
}

var allTransitions = []Transition{
	workflowStart, nodeSkip, graphPatch, runReplay,
	planOpen, planClaim, planRevise, stepOpen, stepFinish, planClose, usageReport, cancel,
	hitlApprove, approvalAsk,
	registryPush, agentGet, agentAsk,
	schedulePut, scheduleList, scheduleDelete, action,
	auditRead,
	keyPut, adminPut, adminStop, skillApprove, policyPush, grantRevoke, intentResolve, recordErase, userErase,
}

var transitions = byType(allTransitions)

func byType(list []Transition) map[string]Transition {
	out := make(map[string]Transition, len(list))
	for _, m := range list {
		out[m.Type] = m
	}
	return out
}

// Has reports whether there is a Transition for a type.
func Has(typ string) bool {
	_, ok := transitions[typ]
	return ok
}

// Administers reports whether intents of a type are administrative: other such intents read what
// they change, such as a tenant's directory data.
func Administers(typ string) bool { return transitions[typ].administers }

// Judge decides whether an intent of the router is legal on the current state, and returns its
// effect. What it reads is added to the view. Rows of the directory may name what these types
// define. Times in the effect's result are those of the decision. The error is a
// *intents.Refusal.
func (v *View) Judge(o Intent, types *catalog.Catalog) (Effect, error) {
	m, ok := transitions[o.Type]
	if !ok {
		return Effect{}, fmt.Errorf("state: no move for %s", o.Type)
	}
	v.types = types
	o.At = o.Now // its record may have a later time, if the clock stepped back
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return m.judge(v, o)
}

// timedID checks the age of an id that an intent introduces. It is not checked again when people
// release a held intent, since that may take a day.
func (v *View) timedID(o Intent, kind, id, pointer string) error {
	if o.Released {
		return nil
	}
	if reason := intents.CheckTimedID(kind, id, o.Now); reason != "" {
		return illegal(pointer, reason)
	}
	return nil
}

// illegal is the refusal of an intent that the state does not allow.
func illegal(pointer, reason string) error {
	return intents.Refuse(intents.MalformedArgs, pointer, reason)
}
