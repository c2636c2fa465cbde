package audit_test

import (
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

// TestVerifyLongClosedPlans: an auditor lets plans leave with the same record as the
// router, also where that was a refusal; so it takes what the router took afterwards.
func TestVerifyLongClosedPlans(t *testing.T) {
	w := newWorld(t)
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed")
	task := p.Started(1)
	w.Want(p.Cancel(w.Gateway), intents.OK)
	next := w.Begun("p2", "feed")
	w.Clock.Move(state.PlanKept)
	w.Want(task.Call("feed", `{}`), intents.KeyRevoked) // counted only
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}}), intents.KeyRole)
	if _, ok := w.Dir.View().Plan("default", p.ID); ok {
		t.Fatal("the plan is still there")
	}
	again := next.NewTask(1)
	again.Key = task.Key
	w.Want(next.Do(next.StepIntent(again.StepArgs())), intents.OK)
	w.Want(again.Call("feed", `{}`), intents.OK)
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
}
