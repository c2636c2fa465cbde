package router_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestAskEndsWithItsTask: any end of the asking task ends those that it has asked for. It may
// itself report that one of its own has no answer, and nobody else's.
func TestAskEndsWithItsTask(t *testing.T) {
	w, p, task := asking(t)
	child, hung := task.MustAsk("spoons", "1.0"), task.MustAsk("knives", "1.1")
	unavailable := func(by *routertest.Task, of string) *intents.Answer {
		return w.Do(by.Intent("step.finish", catalog.StepFinish{TaskID: of, Status: catalog.AskUnavailable, Reason: "it does not answer"}))
	}
	refused(t, unavailable(child, hung.TaskID), intents.TaskScope, "not the key's own task")
	refused(t, unavailable(child, task.TaskID), intents.TaskScope, "not the key's own task")
	refused(t, unavailable(task, task.TaskID), intents.MalformedArgs, "only the task that asked")
	refused(t, w.Do(task.Intent("step.finish", catalog.StepFinish{TaskID: hung.TaskID, Status: "failed", Reason: "no"})), intents.TaskScope, "not the key's own task")
	w.Want(unavailable(task, hung.TaskID), intents.OK)
	over := func(task *routertest.Task, call string) {
		t.Helper()
		o := task.CallIntent("spoon.buy", `{"n":7}`)
		o.Ctx.Call = call
		if _, err := w.Router.Submit(t.Context(), w.Sign(o)); intents.CodeOf(err) != intents.KeyRevoked {
			t.Errorf("an intent of a task that has ended: %v", err)
		}
	}
	over(hung, "1.0")
	w.Want(p.Claim(), intents.OK)
	over(child, "1.0")
	resumed := p.NewTask(1)
	got := callStatuses(t, w.Want(w.Do(p.StepIntent(resumed.StepArgs())), intents.OK))
	want := map[string]string{"1.0": "agent.ask interrupted", "1.1": "agent.ask unavailable"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	next := resumed.MustAsk("knives", "2.0")
	w.Want(resumed.Reply("Nothing."), intents.OK)
	over(next, "1.0")

	w.Want(p.Fail(), intents.OK)
	q := w.BegunAgent("q", "desk")
	last := q.Started(1)
	child = last.MustAsk("spoons", "1.0")
	w.Want(q.Cancel(w.Gateway), intents.OK)
	over(child, "1.0")
	w.Restart()
}

// TestAskIsResumed: after a crash the next task asks again under the same call. The asked task
// continues from what the previous one did: its once call is not repeated, while another asked task
// makes an equal one. An agent that has answered is not asked again.
func TestAskIsResumed(t *testing.T) {
	w, p, task := asking(t)
	w.Bus.On("transcript.get", func(_ context.Context, c routertest.Call) intents.Report { return report(t, c) })
	buy := func(task *routertest.Task, occurrence int) *intents.Answer {
		o := task.CallIntent("spoon.buy", `{"n":1}`)
		o.Ctx.Call, o.Ctx.Occurrence = "1.0", occurrence
		return w.Do(o)
	}
	child, other := task.MustAsk("spoons", "1.0"), task.MustAsk("knives", "1.1")
	bought := w.Want(buy(child, 0), intents.OK)
	w.Want(buy(other, 0), intents.OK) // an equal call of another ask
	w.Want(other.Reply("Knives."), intents.OK)
	w.Want(p.Claim(), intents.OK)

	task = p.NewTask(1)
	a := w.Want(w.Do(p.StepIntent(task.StepArgs())), intents.OK)
	if d := cmp.Diff(map[string]string{"1.0": "agent.ask interrupted", "1.1": "agent.ask done"}, callStatuses(t, a)); d != "" {
		t.Error(d)
	}
	var all catalog.PlanDetails
	w.Must(json.Unmarshal(a.Details, &all))
	ids := []string{all.Calls[0].IntentID, all.Calls[1].IntentID}
	got := routertest.Result[catalog.TranscriptGetResult](w, w.Want(w.Do(task.Intent("transcript.get", catalog.TranscriptGet{IntentIDs: ids})), intents.OK))
	if c := got.Calls[1]; len(got.Calls) != 2 || c.Status != "done" || string(c.Result) != `{"reply":"Knives."}` || c.Type != "agent.ask" {
		t.Errorf("the ask that was answered: %+v", got)
	}
	if c := got.Calls[0]; c.Status != catalog.AskInterrupted || c.Result != nil {
		t.Errorf("the ask that was interrupted: %+v", c)
	}
	o, _ := task.AskIntent("knives", "1.1", nil)
	refused(t, w.Do(o), intents.MalformedArgs, "an agent was asked by this call")

	o, child = task.AskIntent("spoons", "1.0", nil)
	a = w.Want(w.Do(o), intents.OK)
	if d := cmp.Diff(map[string]string{"1.0": "skill.call done"}, callStatuses(t, a)); d != "" {
		t.Errorf("the asked task is told what the one before did: %s", d)
	}
	calls := routertest.Result[catalog.TranscriptGetResult](w, w.Want(w.Do(child.Intent("transcript.get", catalog.TranscriptGet{IntentIDs: []string{bought.IntentID}})), intents.OK))
	if len(calls.Calls) != 1 || calls.Calls[0].Status != "done" {
		t.Errorf("the call of the task before: %+v", calls)
	}
	w.Want(w.Do(child.Intent("transcript.get", catalog.TranscriptGet{IntentIDs: ids})), intents.MalformedArgs) // of the step's own task
	if a := buy(child, 0); !a.Replayed || a.IntentID != bought.IntentID {
		t.Errorf("bought twice: %+v", a)
	}
	w.Want(buy(child, 1), intents.OK) // another one is meant
	o = child.Intent("exec_python", catalog.ExecPython{Script: "1", From: bought.IntentID})
	w.Want(w.Do(o), intents.OK)
	o = task.Intent("exec_python", catalog.ExecPython{Script: "1", From: bought.IntentID})
	refused(t, w.Do(o), intents.MalformedArgs, "names nothing that this step may read")

	// An agent that has not answered by the deadline is not asked again.
	w.Clock.Move(2 * time.Minute)
	w.Want(p.Claim(), intents.OK)
	task = p.NewTask(1)
	if got := callStatuses(t, w.Want(w.Do(p.StepIntent(task.StepArgs())), intents.OK)); got["1.0"] != "agent.ask unavailable" {
		t.Errorf("past its deadline: %v", got)
	}
	o, _ = task.AskIntent("spoons", "1.0", nil)
	refused(t, w.Do(o), intents.MalformedArgs, "an agent was asked by this call")
	w.Restart()
}

// TestHeldAsk: the held intent of an asked task holds the step once the asking task ends as held. After
// the approval, however late, the call is asked again and continues.
func TestHeldAsk(t *testing.T) {
	w, p, task := asking(t)
	w.Approval(`{"once":true}`, "ben")
	child := task.MustAsk("spoons", "1.0")
	o := child.CallIntent("spoon.buy", `{"n":1}`)
	o.Ctx.Call = "1.0"
	a := w.Want(w.Do(o), intents.ApprovalRequired)
	other := task.MustAsk("knives", "1.1")
	refused(t, other.Finish("held", "", ""), intents.MalformedArgs, "no intent of this step waits")
	w.Want(other.Reply("Knives."), intents.OK)
	w.Want(child.Finish("held", "", ""), intents.OK)
	if v := p.View(); v.Steps[0].Status != catalog.StepRunning {
		t.Errorf("the step, while the task that asked runs: %+v", v.Steps)
	}
	w.Want(task.Finish("held", "", ""), intents.OK)
	if v := p.View(); v.Steps[0].Status != catalog.StepPendingApproval {
		t.Errorf("the step: %+v", v.Steps)
	}
	w.Clock.Move(10 * time.Minute)
	w.Want(releaseWorld{w, child, a}.says("ben", catalog.DecisionApprove), intents.OK)
	_, err := w.Router.Await(t.Context(), *a.Position)
	w.Must(err)
	if v := p.View(); v.Steps[0].Status != catalog.StepPending {
		t.Errorf("the step, after the approval: %+v", v.Steps)
	}
	task = p.NewTask(1)
	if got := callStatuses(t, w.Want(w.Do(p.StepIntent(task.StepArgs())), intents.OK)); got["1.0"] != "agent.ask held" {
		t.Errorf("told %v", got)
	}
	o, _ = task.AskIntent("spoons", "1.0", nil)
	if got := callStatuses(t, w.Want(w.Do(o), intents.OK)); got["1.0"] != "skill.call done" {
		t.Errorf("the asked task is told %v", got)
	}
	w.Restart()
}

// TestCrashAfterAsk: a crash between an ask and its delegation leaves a task whose key nobody has.
// The next driver ends it, and the next task asks again under the same call.
func TestCrashAfterAsk(t *testing.T) {
	w, p, task := asking(t)
	o, child := task.AskIntent("spoons", "1.0", nil)
	w.Want(w.Do(o), intents.OK)
	w, open := left(w, child.CallIntent("spoon.buy", `{"n":1}`)) // and one during its once call
	w.Start()
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	p = p.On(w)
	w.Want(p.Claim(), intents.OK)
	task = p.Started(1)
	again, next := task.AskIntent("spoons", "1.0", nil)
	w.Want(w.Do(again), intents.OK)
	buys := next.CallIntent("spoon.buy", `{"n":1}`)
	if a := w.Want(w.Do(buys), intents.Indeterminate); a.IntentID != open.IntentID {
		t.Errorf("another intent: %+v", a)
	}
	buys.Ctx.Occurrence = 1
	w.Want(w.Do(buys), intents.ConflictIdempotency)
	w.Want(next.Reply("Perhaps one."), intents.OK)
}
