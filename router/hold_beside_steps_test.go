package router_test

import (
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// A held plan is dispatched after a crash while a step beside the held one can continue, and not
// when none can. Its living driver is notified of the end of a hold.
func TestHeldBesideOthers(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	people(w)
	w.Data("approval", `{"once":true}`)
	w.Pin("pay", catalog.Once)
	w.Pin("feed", catalog.Pure)
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	steps := routertest.Steps(1, "pay", "feed", "feed")
	steps[1].InputFromStep, steps[1].Parallel = 0, true
	w.Want(p.Plan(steps), intents.OK)
	pays, feeds := p.Started(1), p.Started(2)
	a := w.Want(pays.Call("pay", `{"n":1}`), intents.ApprovalRequired)
	restarted := w.Journal.Next()
	if got := w.Dir.Silent(restarted); len(got) != 1 {
		t.Errorf("silent while a step is at work after a crash: %+v", got)
	}
	w.Clock.Move(time.Second)
	w.Want(releaseWorld{w, pays, a}.says("ben", catalog.DecisionApprove), intents.OK)
	_, err := w.Router.Await(t.Context(), *a.Position)
	w.Must(err)
	if got := w.Dir.Silent(0); len(got) != 0 {
		t.Errorf("silent while its driver works: %+v", got)
	}
	feeds.Done()
}

// Failures beside a running step are one replan; nothing begins until the step has ended and the
// plan is revised. Completed steps keep their numbers, and new ones continue.
func TestFailuresAreOneReplan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	steps := routertest.Steps(1, "feed", "feed", "feed", "feed", "feed", "feed")
	for i := range steps {
		steps[i].InputFromStep, steps[i].Parallel = 0, true
	}
	w.Want(p.Plan(steps), intents.OK)
	one, two, three := p.Started(1), p.Started(2), p.Started(3)
	four := p.Started(4)
	w.Want(w.Do(p.StepIntent(p.NewTask(5).StepArgs())), intents.MalformedArgs) // four run
	w.Want(one.Finish("failed", "", "first"), intents.OK)
	w.Want(w.Do(p.StepIntent(p.NewTask(5).StepArgs())), intents.MalformedArgs) // one has failed
	w.Want(p.Plan(routertest.Steps(7, "feed")), intents.MalformedArgs)         // three run
	w.OK(two.Intent("skill.call", catalog.SkillCall{Skill: "feed", Input: []byte(`{}`)}))
	key := two.Done()
	w.Want(three.Finish("insufficient", "", "second"), intents.OK)
	four.Done()
	v := p.View()
	if v.Status != catalog.PlanReplanning || v.ReplanCount != 1 || len(v.History) != 1 || v.History[0].FailedStep != 1 || v.Steps[2].FailureReason != "second" {
		t.Fatalf("%+v", v)
	}
	again := routertest.Steps(7, "feed")
	again[0].Inputs = []int{2, 4}
	w.Want(p.Plan(again), intents.OK)
	v = p.View()
	if len(v.Steps) != 3 || v.Steps[0].MemoryKey != key || v.Steps[1].Step != 4 || v.Steps[2].Step != 7 {
		t.Fatalf("%+v", v)
	}
	seven := p.Started(7)
	for _, from := range v.Steps[:2] {
		w.OK(seven.Intent("read_memory", catalog.ReadMemory{Key: from.MemoryKey}))
	}
	calls := w.Bus.Calls("read_memory")
	if scope := calls[len(calls)-1].Ticket.Scope; scope.InputKey != "" || len(scope.InputKeys) != 2 || scope.InputKeys[0] != key {
		t.Errorf("scope %+v", scope)
	}
	seven.Done()
	w.Want(p.Complete(), intents.OK)
}
