package routertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Walk plays random intents, legal and not, against the router and checks the invariants after each
// of them. The skills feed (pure) and pay (once) are approved.
type Walk struct {
	*Plan
	Rand  *rand.Rand
	tasks []*Task // opened
	fresh *Task   // to be opened by the next step intent
	trace []string
}

// BeginWalk opens a plan to walk on, in a world that PrepareWalks has made ready.
func (w *World) BeginWalk(name string, r *rand.Rand) *Walk {
	w.Helper()
	k := &Walk{Plan: w.NewPlan(name), Rand: r}
	w.Want(k.Open(), intents.OK)
	return k
}

// PrepareWalks makes a world ready for walks: some results of their steps break their contract.
func (w *World) PrepareWalks() {
	w.Helper()
	w.Pin("feed", catalog.Pure)
	w.Pin("pay", catalog.Once)
	write := w.Bus.Executor("write_memory")
	w.Bus.On("write_memory", func(ctx context.Context, c Call) intents.Report {
		if bytes.Contains(c.Body.Intent.Args, []byte("broken")) {
			return Failed(intents.ContractViolation)
		}
		return write(ctx, c)
	})
}

// NextIntent picks one intent: mostly the one that the plan waits for, else any.
func (k *Walk) NextIntent() Intent {
	if k.Rand.IntN(3) == 0 {
		return k.any(k.Rand.IntN(8))
	}
	v := k.View()
	open := slices.IndexFunc(v.Steps, func(s catalog.StepView) bool { return s.Status != catalog.StepDone })
	switch {
	case v.Status == catalog.PlanPending:
		return k.ClaimIntent(k.Epoch + 1)
	case v.Status == catalog.PlanPlanning, v.Status == catalog.PlanReplanning:
		return k.any(1)
	case open < 0:
		return k.any(7)
	case v.Steps[open].Status == catalog.StepPending:
		return k.any(2)
	default:
		return k.any(3 + k.Rand.IntN(4))
	}
}

// any makes an intent of one kind, with random parts.
func (k *Walk) any(kind int) Intent {
	n, task := k.Rand.IntN, k.task()
	switch kind {
	case 0:
		return k.ClaimIntent(1 + k.Epoch + n(2))
	case 1:
		first := 1
		for _, s := range k.View().Steps {
			if n(6) > 0 {
				first = s.Step + 1
			}
		}
		steps := Steps(first, []string{"feed", "pay", "feed"}[n(2):1+n(2)+1]...)
		for i := range steps {
			steps[i].Parallel = n(2) > 0
		}
		return k.PlanIntent(steps)
	case 2:
		k.fresh = k.NewTask(1 + n(2))
		for _, s := range k.View().Steps {
			if s.Status == catalog.StepPending && n(6) > 0 {
				k.fresh.Step = s.Step
				break
			}
		}
		for _, s := range k.View().Steps {
			if s.Step == k.fresh.Step {
				k.fresh.Revision = s.Revision
			}
		}
		a := k.fresh.StepArgs()
		a.Epoch = max(1, a.Epoch)
		if a.PlanDigest == "" {
			a.PlanDigest = intents.Digest(nil)
		}
		return k.StepIntent(k.fresh.Proved(a))
	case 3:
		o := task.CallIntent([]string{"feed", "pay"}[n(2)], fmt.Sprintf(`{"n":%d}`, n(3)))
		o.Ctx.Occurrence = n(2)
		return o
	case 4, 5:
		label := []string{"result", "broken"}[n(8)/7]
		return task.Intent("write_memory", catalog.WriteMemory{Label: label, Data: json.RawMessage(fmt.Sprint(n(2)))})
	case 6:
		a := catalog.StepFinish{TaskID: task.TaskID, Status: []string{"done", "done", "done", "insufficient", "failed"}[n(5)]}
		if a.Status == "done" {
			a.MemoryKey = task.MemoryKey("result")
		} else {
			a.Reason, a.Cause = "the walk", catalog.NeedsPlan
		}
		return task.Intent("step.finish", a)
	default:
		a := catalog.PlanClose{PlanID: k.ID, Epoch: k.Epoch, Status: "complete", Response: "done"}
		if n(6) == 0 {
			a = catalog.PlanClose{PlanID: k.ID, Epoch: k.Epoch, Status: "failed", Failure: &catalog.Failure{Reason: "the walk", CompletedSteps: []int{}}}
		}
		o := k.ClaimIntent(1)
		o.Type, o.Args = "plan.close", a
		return o
	}
}

// task is one of the last opened.
func (k *Walk) task() *Task {
	if len(k.tasks) == 0 {
		return k.NewTask(1)
	}
	return k.tasks[len(k.tasks)-1-k.Rand.IntN(6)/5*k.Rand.IntN(len(k.tasks))]
}

// Opened records that the task of the last step intent was opened.
func (k *Walk) Opened() {
	if k.fresh != nil {
		k.tasks = append(k.tasks, k.fresh)
	}
}

// Step plays one intent.
func (k *Walk) Step() {
	k.Helper()
	k.Clock.Move(1234567) // not a whole millisecond
	o := k.NextIntent()
	before := k.View()
	a := k.Do(o)
	k.trace = append(k.trace, fmt.Sprintf("%s %s", o.Type, a.Code))
	after := k.View()
	if a.Code == intents.Internal {
		k.Fatalf("%v", k.trace)
	}
	if a.Decision == nil || a.Decision.Verdict == intents.Deny || a.Replayed {
		if d := cmp.Diff(before, after); d != "" {
			k.Fatalf("%v: a refusal or duplicate moved the plan: %s", k.trace, d)
		}
		return
	}
	switch o.Type {
	case "plan.claim":
		k.Epoch++
		told := Result[catalog.PlanView](k.World, a)
		if d := cmp.Diff(after, told); d != "" {
			k.Fatalf("%v: told otherwise than folded: %s", k.trace, d)
		}
	case "step":
		k.Opened()
	case "plan":
		k.Revision++
		k.Digest = a.IntentID
	}
	k.invariants(before, after)
}

// invariants of every plan.
func (k *Walk) invariants(before, after catalog.PlanView) {
	k.Helper()
	running, done := 0, 0
	stood := map[int]catalog.StepView{}
	for _, s := range before.Steps {
		stood[s.Step] = s
	}
	isDone := map[int]bool{}
	for i, s := range after.Steps {
		if i > 0 && s.Step <= after.Steps[i-1].Step {
			k.Fatalf("%v: step %d stands behind %d", k.trace, s.Step, after.Steps[i-1].Step)
		}
		switch s.Status {
		case catalog.StepRunning:
			running++
			waits := s.InputFromStep
			if i > 0 && !s.Parallel {
				waits = after.Steps[i-1].Step
			}
			if stood[s.Step].Status == catalog.StepPending && waits != 0 && !isDone[waits] {
				k.Fatalf("%v: step %d began before %d was done", k.trace, s.Step, waits)
			}
		case catalog.StepDone:
			if done++; s.MemoryKey == "" {
				k.Fatalf("%v: step %d is done without a result", k.trace, s.Step)
			}
			isDone[s.Step] = true
		default:
		}
	}
	for _, s := range before.Steps {
		if s.Status == catalog.StepDone && !slices.ContainsFunc(after.Steps, func(x catalog.StepView) bool { return cmp.Equal(s, x) }) {
			k.Fatalf("%v: a done step changed", k.trace)
		}
	}
	if running > catalog.MaxLive || after.ReplanCount > catalog.MaxReplans || len(after.Steps) > catalog.MaxSteps || after.Revision < before.Revision || after.Epoch < before.Epoch {
		k.Fatalf("%v: %+v", k.trace, after)
	}
	if after.Status == catalog.PlanComplete && done != len(after.Steps) {
		k.Fatalf("%v: complete with open steps", k.trace)
	}
}
