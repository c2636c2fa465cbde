package routertest

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Telling is a plan that has ended, each of whose texts has a word in it: it was
// replanned twice, and then closed as complete, closed as failed or cancelled.
type Telling struct {
	*Plan
	Intents []*intents.Answer // of the router, whose arguments are stored apart
	Others  []*intents.Answer // of the router, whose results alone have the word
}

// Tell plays such a plan, up to its end; how is complete, failed or cancel. The
// end is another call, so that a test may look at the plan before.
func (w *World) Tell(id, word, how string) (t *Telling, end func()) {
	w.Helper()
	w.Pin("feed", catalog.Pure)
	p := w.NewPlan(id)
	t = &Telling{Plan: p}
	say := func(o Intent) *intents.Answer {
		w.Helper()
		a := w.Want(w.Do(o), intents.OK)
		t.Intents = append(t.Intents, a)
		return a
	}
	other := func(o Intent) {
		w.Helper()
		t.Others = append(t.Others, w.Want(w.Do(o), intents.OK))
	}
	claim := func() {
		w.Helper()
		other(p.ClaimIntent(p.Epoch + 1))
		p.Epoch++
	}
	plan := func() {
		w.Helper()
		steps := Steps(p.Revision+1, "feed") // each revision has one step
		steps[0].Task, steps[0].ReturnSpec.Reason = word+" step <&>", word+" contract"
		p.Digest = say(p.PlanIntent(steps)).IntentID
		p.Revision++
	}
	start := func() *Task {
		w.Helper()
		task := p.NewTask(p.Revision)
		other(p.StepIntent(task.StepArgs()))
		return task
	}
	say(p.intent(p.Gateway, "plan.open", catalog.PlanOpen{PlanID: p.ID, Task: word + " réquest"}))
	claim()
	plan()
	task := start()
	say(task.Intent("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "insufficient", Reason: word + " reason", Suggestion: word + " suggestion"}))
	claim()
	plan()
	say(p.intent(p.Manager, "step.finish", catalog.StepFinish{TaskID: start().TaskID, Status: "failed", Reason: word + " failure"}))
	plan()
	return t, func() {
		w.Helper()
		switch how {
		case "complete":
			task := start()
			w.Want(task.Write("result"), intents.OK)
			say(task.Intent("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "done", MemoryKey: task.MemoryKey("result")}))
			say(p.intent(p.Manager, "plan.close", catalog.PlanClose{PlanID: p.ID, Epoch: p.Epoch, Status: "complete", Response: word + " answer"}))
		case "failed":
			say(p.intent(p.Manager, "plan.close", catalog.PlanClose{PlanID: p.ID, Epoch: p.Epoch, Status: "failed", Failure: &catalog.Failure{
				Reason: word + " end", CompletedSteps: []int{}, LastFailure: &catalog.LastFailure{Step: 1, Reason: word + " last"},
			}}))
		default:
			say(p.intent(p.Gateway, "cancel", catalog.Cancel{PlanID: p.ID, Reason: word + " will"}))
		}
	}
}

// Erase erases parts of an intent of default, as the operator of system.
func (w *World) Erase(a *intents.Answer, parts ...string) *intents.Answer {
	w.Helper()
	return w.Admin("record.erase", catalog.RecordErase{Tenant: "default", IntentID: a.IntentID, Position: *a.Position, Parts: parts, Reason: "the person asked for it"})
}

// Erase has every text of the plan erased.
func (t *Telling) Erase() {
	t.Helper()
	for _, a := range t.Intents {
		t.Want(t.World.Erase(a, catalog.ErasesEnvelope, catalog.ErasesResult), intents.OK)
	}
	for _, a := range t.Others {
		t.Want(t.World.Erase(a, catalog.ErasesResult), intents.OK)
	}
}
