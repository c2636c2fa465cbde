package router_test

import (
	"context"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// Replanning is surgical: completed steps and their keys stay, the rest is replaced, and nothing of
// the old revision counts for the new one.
func TestSurgicalReplan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.Pin("rank", catalog.Pure)
	p := w.Begun("p1", "feed", "rank")
	k1 := p.Started(1).Done()
	old := p.Started(2)
	w.Want(old.Write("result"), intents.OK)
	w.Want(old.Call("rank", `{}`), intents.OK)
	w.Want(old.Finish("insufficient", "", "no rows"), intents.OK)
	v := p.View()
	if v.Status != catalog.PlanReplanning || v.ReplanCount != 1 || v.Steps[1].Status != catalog.StepInsufficient || v.Steps[1].FailureReason != "no rows" {
		t.Fatalf("%+v", v)
	}
	before := p.Digest
	w.Want(p.Plan(routertest.Steps(1, "rank")), intents.MalformedArgs) // step 1 is done
	w.Want(p.Plan(routertest.Steps(2, "rank")), intents.MalformedArgs) // step 2 was another
	w.Want(p.Plan(fromFirst(routertest.Steps(3, "rank", "rank"))), intents.OK)
	v = p.View()
	if v.Status != catalog.PlanExecuting || v.Revision != 2 || v.PlanDigest == before || v.PlanDigest != p.Digest || len(v.Steps) != 3 ||
		v.Steps[0].MemoryKey != k1 || v.Steps[0].Revision != 1 || v.Steps[1].Revision != 2 || v.Steps[1].Status != catalog.StepPending || v.Steps[1].TaskID != "" {
		t.Fatalf("%+v", v)
	}
	t2 := p.Started(3)
	w.OK(t2.Intent("read_memory", catalog.ReadMemory{Key: k1}))
	if a := w.Want(t2.Call("rank", `{}`), intents.OK); a.Replayed {
		t.Error("an intent of the old revision answers for the new one")
	}
	if a := w.Want(t2.Finish("done", old.MemoryKey("result"), ""), intents.MalformedArgs); a.Pointer != "/intent/args/memory_key" {
		t.Errorf("pointer %s", a.Pointer)
	}
	t2.Done()
	p.Started(4).Done()
	w.Want(p.Complete(), intents.OK)
}

// fromFirst makes the first of the steps work on the result of step 1.
func fromFirst(steps []catalog.PlanStep) []catalog.PlanStep {
	steps[0].Inputs = []int{1}
	return steps
}

// A late result of the old revision is not the new step's.
func TestLateResultOfOldRevision(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	g := newGate()
	w.Bus.On("write_memory", g.executor(routertest.Done(catalog.WriteMemoryResult{Key: task.MemoryKey("late"), SizeBytes: 1, Validated: true})))
	raw := w.Sign(task.Intent("write_memory", catalog.WriteMemory{Label: "late", Data: []byte(`[1]`)}))
	answer := make(chan *intents.Answer, 1)
	go func() { answer <- w.Send(raw) }()
	<-g.began
	w.Want(task.Finish("failed", "", "slow"), intents.OK)
	w.Want(task.Plan.Plan(routertest.Steps(2, "feed")), intents.OK)
	next := task.Plan.Started(2)
	close(g.answer)
	w.Want(<-answer, intents.OK)
	w.Want(next.Finish("done", task.MemoryKey("late"), ""), intents.MalformedArgs)
}

// A result that breaks its contract fails the step and the task, by the outcome.
func TestContractViolation(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w.Bus.On("write_memory", routertest.Always(routertest.Failed(intents.ContractViolation)))
	w.Want(task.Write("result"), intents.ContractViolation)
	v := task.View()
	if v.Status != catalog.PlanReplanning || v.Steps[0].Status != catalog.StepFailed || v.History[0].Trigger != "contract_violation" || v.Steps[0].FinishedAt == nil {
		t.Errorf("%+v", v)
	}
	w.Want(task.Call("feed", `{}`), intents.KeyRevoked)
	w.Want(task.Finish("failed", "", "x"), intents.KeyRevoked)
}

// A contract violation after the task's end counts no second time.
func TestLateContractViolation(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	g := newGate()
	w.Bus.On("write_memory", g.executor(routertest.Failed(intents.ContractViolation)))
	raw := w.Sign(task.Intent("write_memory", catalog.WriteMemory{Label: "late", Data: []byte(`[1]`)}))
	answer := make(chan *intents.Answer, 1)
	go func() { answer <- w.Send(raw) }()
	<-g.began
	w.Want(task.Finish("insufficient", "", "slow"), intents.OK)
	close(g.answer)
	w.Want(<-answer, intents.ContractViolation)
	if v := task.View(); v.ReplanCount != 1 || len(v.History) != 1 {
		t.Errorf("%+v", v.History)
	}
}

// Three replans; after the fourth trigger only plan.close failed is legal.
func TestReplansAreBounded(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "feed")
	for i := range 3 {
		w.Want(p.Started(i+1).Finish("failed", "", "again"), intents.OK)
		if v := p.View(); v.ReplanCount != i+1 || v.Status != catalog.PlanReplanning {
			t.Fatalf("after %d: %+v", i+1, v)
		}
		w.Want(p.Plan(routertest.Steps(i+2, "feed")), intents.OK)
	}
	w.Want(p.Started(4).Finish("failed", "", "again"), intents.OK)
	v := p.View()
	if v.ReplanCount != 3 || len(v.History) != 4 || v.History[3].Attempt != 4 {
		t.Errorf("%+v", v)
	}
	w.Want(p.Plan(routertest.Steps(5, "feed")), intents.MalformedArgs)
	w.Want(w.Do(p.StepIntent(p.NewTask(4).StepArgs())), intents.MalformedArgs)
	w.Want(p.Complete(), intents.MalformedArgs)
	w.Want(p.Fail(), intents.OK)
	if s, _ := p.Status(); s != catalog.PlanFailed {
		t.Errorf("status %s", s)
	}
}

// However often a step is interrupted, it continues; an interruption is not a replan.
func TestInterruptionsAreNoReplans(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("pay", catalog.Once)
	p := w.Begun("p1", "pay")
	w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		return routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})
	})
	for i := range 5 {
		o := p.Started(1).CallIntent("pay", `{}`)
		o.Ctx.Occurrence = i
		w.OK(o)
		w.Want(p.Claim(), intents.OK)
	}
	if v := p.View(); v.ReplanCount != 0 || len(v.History) != 0 || v.Status != catalog.PlanExecuting {
		t.Errorf("%+v", v)
	}
	p.Started(1).Done()
	w.Want(p.Complete(), intents.OK)
}
