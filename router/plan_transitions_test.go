package router_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

func TestPlanOpen(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	bob := w.NewPlan("p1")
	bob.User = "bob"
	w.Want(bob.Open(), intents.MalformedArgs)
	// An intent whose context names one plan opens no other: a standing grant is for the plan that
	// the context names.
	o := w.NewPlan("p2").OpenIntent()
	o.Ctx.PlanID = routertest.PlanID("p1")
	o.Grant = func(g *intents.Grant) { g.For = "plan:" + routertest.PlanID("p1") }
	w.Want(w.Do(o), intents.TaskScope)
	if s, _ := p.Status(); s != catalog.PlanPending {
		t.Errorf("status %s", s)
	}
}

func TestPlanClaim(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	for _, epoch := range []int{2, 3} {
		if a := w.Want(w.Do(p.ClaimIntent(epoch)), intents.MalformedArgs); a.Pointer != "/intent/args/epoch" {
			t.Errorf("pointer %s", a.Pointer)
		}
	}
	v := routertest.Result[catalog.PlanView](w, p.Claim())
	if v.Epoch != 1 || v.Status != catalog.PlanPlanning || v.Task != "Which ten?" {
		t.Errorf("%+v", v)
	}
	other := p.ClaimIntent(1)
	other.Args = catalog.PlanClaim{PlanID: routertest.PlanID("p1"), Epoch: 1, Driver: "thief"}
	w.Want(w.Do(other), intents.MalformedArgs)
	w.Want(p.Fail(), intents.OK)
	w.Want(p.Claim(), intents.MalformedArgs)
}

// Of many drivers that claim one epoch at once exactly one wins, and each loser is refused on the
// state that the winner left.
func TestEpochRace(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	codes := make([]intents.Code, 50)
	var all sync.WaitGroup
	for i := range codes {
		o := p.ClaimIntent(1)
		o.Args = catalog.PlanClaim{PlanID: routertest.PlanID("p1"), Epoch: 1, Driver: fmt.Sprintf("driver%d", i)}
		raw := w.Sign(o)
		all.Go(func() { codes[i] = w.Send(raw).Code })
	}
	all.Wait()
	count := map[intents.Code]int{}
	for _, c := range codes {
		count[c]++
	}
	if count[intents.OK] != 1 || count[intents.MalformedArgs] != 49 {
		t.Errorf("%v", count)
	}
}

func TestPlanSubmit(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	p.Epoch = 1
	w.Want(p.Plan(routertest.Steps(1, "a")), intents.MalformedArgs) // nobody drives it
	p.Epoch = 0
	w.Want(p.Claim(), intents.OK)
	eleven := routertest.Steps(1, strings.Split(strings.Repeat("a ", 10)+"a", " ")...)
	w.Want(p.Plan(eleven), intents.SchemaInvalid)
	for name, c := range map[string]struct {
		pointer string
		change  func([]catalog.PlanStep)
	}{
		"gap":           {"/intent/args/steps/1/step", func(s []catalog.PlanStep) { s[1].Step = 3 }},
		"from 2":        {"/intent/args/steps/0/step", func(s []catalog.PlanStep) { s[0].Step, s[1].Step = 2, 3 }},
		"input of self": {"/intent/args/steps/1/input_from_step", func(s []catalog.PlanStep) { s[1].InputFromStep = 2 }},
		"bad shape":     {"/intent/args/steps/0/return_spec/shape", func(s []catalog.PlanStep) { s[0].ReturnSpec.Shape = "array<" }},
	} {
		steps := routertest.Steps(1, "a", "b")
		c.change(steps)
		if a := p.Plan(steps); a.Code != intents.MalformedArgs || a.Pointer != c.pointer {
			t.Errorf("%s: %s at %s: %s", name, a.Code, a.Pointer, a.Reason)
		}
	}
	o := p.PlanIntent(routertest.Steps(1, "a"))
	o.Args = catalog.Plan{PlanID: routertest.PlanID("p1"), Epoch: 1, Revision: 2, Steps: routertest.Steps(1, "a")}
	w.Want(w.Do(o), intents.MalformedArgs)
	w.Want(p.Plan(routertest.Steps(1, "a")), intents.OK)
	w.Want(p.Plan(routertest.Steps(1, "b")), intents.MalformedArgs) // executing: not now
}

// If no step is needed, the first revision is the answer, and the plan is closed with that text
// alone.
func TestPlanAnswer(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	submit := func(revision int, answer string, steps []catalog.PlanStep) *intents.Answer {
		o := p.PlanIntent(nil)
		o.Args = catalog.Plan{PlanID: p.ID, Epoch: 1, Revision: revision, Steps: append([]catalog.PlanStep{}, steps...), Answer: answer}
		return w.Do(o)
	}
	for name, a := range map[string]*intents.Answer{
		"/intent/args/answer":   submit(1, "Hello.", routertest.Steps(1, "a")),
		"/intent/args/answer ":  submit(1, "", nil),
		"/intent/args/revision": submit(2, "Hello.", nil),
	} {
		if a.Code != intents.MalformedArgs || a.Pointer != strings.TrimSpace(name) {
			t.Errorf("%s: %s at %s: %s", name, a.Code, a.Pointer, a.Reason)
		}
	}
	w.Want(submit(1, "Hello.", nil), intents.OK)
	// A driver that dies here leaves the answer to the next one, with the claim.
	var told catalog.PlanView
	o := p.ClaimIntent(2)
	if err := json.Unmarshal(w.Want(w.Do(o), intents.OK).Outcome.Result, &told); err != nil || told.Response != "Hello." || told.Status != catalog.PlanExecuting {
		t.Errorf("the next driver is told %+v, error %v", told, err)
	}
	p.Epoch = 2
	closing := func(text string) *intents.Answer {
		o := p.PlanIntent(nil)
		o.By, o.Type = w.Manager, "plan.close"
		o.Args = catalog.PlanClose{PlanID: p.ID, Epoch: 2, Status: "complete", Response: text}
		return w.Do(o)
	}
	if a := closing("Good bye."); a.Code != intents.MalformedArgs || a.Pointer != "/intent/args/response" {
		t.Errorf("%s at %s: %s", a.Code, a.Pointer, a.Reason)
	}
	w.Want(closing("Hello."), intents.OK)
}

// The plan sums up the model usage that agents report, by agent and model.
func TestPlanUsage(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("a", catalog.Pure)
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	one := func(agent string, tokens int) catalog.Usage {
		return catalog.Usage{Agent: agent, Model: "openai:m", Calls: 1, InputTokens: tokens, OutputTokens: 1, LatencyMS: 7}
	}
	o := p.PlanIntent(nil)
	o.Args = catalog.Plan{PlanID: p.ID, Epoch: 1, Revision: 1, Steps: routertest.Steps(1, "a"), Usage: []catalog.Usage{one("planner", 100)}}
	p.Digest, p.Revision = w.Want(w.Do(o), intents.OK).IntentID, p.Revision+1
	finish := func(task *routertest.Task, status, key string, u catalog.Usage) {
		a := catalog.StepFinish{TaskID: task.TaskID, Status: status, MemoryKey: key, Usage: []catalog.Usage{u}}
		if key == "" {
			a.Reason = "x"
		}
		w.Want(task.Do(task.Intent("step.finish", a)), intents.OK)
	}
	finish(p.Started(1), "insufficient", "", one("executor", 10))
	o.Args = catalog.Plan{PlanID: p.ID, Epoch: 1, Revision: 2, Steps: routertest.Steps(2, "a"), Usage: []catalog.Usage{one("planner", 200)}}
	p.Digest, p.Revision = w.Want(w.Do(o), intents.OK).IntentID, p.Revision+1
	task := p.Started(2)
	w.Want(task.Write("result"), intents.OK)
	finish(task, "done", task.MemoryKey("result"), one("executor", 20))
	o.By, o.Type = w.Manager, "plan.close"
	o.Args = catalog.PlanClose{PlanID: p.ID, Epoch: 1, Status: "complete", Response: "These.", Usage: []catalog.Usage{one("composer", 5)}}
	w.Want(w.Do(o), intents.OK)
	want := []catalog.Usage{
		{Agent: "composer", Model: "openai:m", Calls: 1, InputTokens: 5, OutputTokens: 1, LatencyMS: 7},
		{Agent: "executor", Model: "openai:m", Calls: 2, InputTokens: 30, OutputTokens: 2, LatencyMS: 14},
		{Agent: "planner", Model: "openai:m", Calls: 2, InputTokens: 300, OutputTokens: 2, LatencyMS: 14},
	}
	if d := cmp.Diff(want, p.View().Usage); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// After a failure there is no answer without steps.
func TestNoAnswerAfterAFailure(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("a", catalog.Pure)
	p := w.Begun("p1", "a")
	w.Want(p.Started(1).Finish("insufficient", "", "x"), intents.OK)
	o := p.PlanIntent(nil)
	o.Args = catalog.Plan{PlanID: p.ID, Epoch: 1, Revision: 2, Steps: []catalog.PlanStep{}, Answer: "Hello."}
	if a := w.Do(o); a.Code != intents.MalformedArgs || a.Pointer != "/intent/args/steps" {
		t.Errorf("%s at %s: %s", a.Code, a.Pointer, a.Reason)
	}
}

// Ten steps in all, done ones included.
func TestPlanHasTenStepsAtMost(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("a", catalog.Pure)
	p := w.Begun("p1", "a", "a")
	p.Started(1).Done()
	w.Want(p.Started(2).Finish("insufficient", "", "x"), intents.OK)
	ten := routertest.Steps(3, strings.Split(strings.Repeat("a ", 9)+"a", " ")...)
	w.Want(p.Plan(ten), intents.MalformedArgs)
	w.Want(p.Plan(ten[:9]), intents.OK)
}

// Another user's plan is out of scope for every transition, and so is an old driver's.
func TestPlanBelongsToItsUser(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "a")
	bob := *p
	bob.User = "bob"
	for name, o := range map[string]routertest.Intent{
		"claim": bob.ClaimIntent(2), "plan": bob.PlanIntent(routertest.Steps(1, "a")), "step": bob.StepIntent(bob.NewTask(1).StepArgs()),
	} {
		w.Want(w.Do(o), intents.TaskScope)
		o.Ctx.PlanID = ""
		if a := w.Do(o); a.Code != intents.TaskScope {
			t.Errorf("%s without context: %s", name, a.Code)
		}
	}
	w.Want(bob.Complete(), intents.TaskScope)
	w.Want(bob.Cancel(w.Gateway), intents.TaskScope)
	w.Want(bob.Cancel(w.Manager), intents.TaskScope)
	old := *p
	w.Want(p.Claim(), intents.OK)
	w.Want(w.Do(old.StepIntent(old.NewTask(1).StepArgs())), intents.MalformedArgs)
	w.Want(old.Fail(), intents.MalformedArgs)
	if s, _ := p.Status(); s != catalog.PlanExecuting {
		t.Errorf("status %s", s)
	}
}

// A step is opened once, in order, for the current plan, with a fresh key whose possession is
// proved.
func TestStep(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "a", "b")
	first := p.Started(1)
	w.Want(w.Do(p.StepIntent(p.NewTask(1).StepArgs())), intents.MalformedArgs) // one live task per step
	first.Done()
	for _, c := range []struct {
		name    string
		code    intents.Code
		pointer string
		change  func(*routertest.Task, *catalog.Step)
	}{
		{"done step", intents.MalformedArgs, "/intent/args/step", func(_ *routertest.Task, a *catalog.Step) { a.Step = 1 }},
		{"no such step", intents.MalformedArgs, "/intent/args/step", func(_ *routertest.Task, a *catalog.Step) { a.Step = 3 }},
		{"other digest", intents.MalformedArgs, "/intent/args/plan_digest", func(_ *routertest.Task, a *catalog.Step) { a.PlanDigest = intents.Digest(nil) }},
		{"old epoch", intents.MalformedArgs, "/intent/args/epoch", func(_ *routertest.Task, a *catalog.Step) { a.Epoch = 2 }},
		{"deadline past", intents.MalformedArgs, "/intent/args/deadline", func(_ *routertest.Task, a *catalog.Step) { a.Deadline = "2026-11-20T10:00:00Z" }},
		{"deadline far", intents.MalformedArgs, "/intent/args/deadline", func(_ *routertest.Task, a *catalog.Step) { a.Deadline = "2026-11-20T11:00:06Z" }},
		{"task id again", intents.MalformedArgs, "/intent/args/task_id", func(_ *routertest.Task, a *catalog.Step) { a.TaskID = first.TaskID }},
		{"key again", intents.MalformedArgs, "/intent/args/jwk", func(task *routertest.Task, a *catalog.Step) {
			task.Key = first.Key
			a.JWK = first.Key.VerificationKey().ToJWK()
		}},
		{"a key of the key set", intents.MalformedArgs, "/intent/args/jwk", func(task *routertest.Task, a *catalog.Step) {
			task.Key = w.Planner
			a.JWK = w.Planner.VerificationKey().ToJWK()
			a.JWK.Role = ""
		}},
	} {
		task := p.NewTask(2)
		a := task.StepArgs()
		c.change(task, &a)
		if got := w.Do(p.StepIntent(task.Proved(a))); got.Code != c.code || got.Pointer != c.pointer {
			t.Errorf("%s: %s at %s: %s", c.name, got.Code, got.Pointer, got.Reason)
		}
	}
	p.Started(2).Done()
}

// Possession is proved over exactly the other arguments, by exactly that key.
func TestStepProof(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "a")
	task := p.NewTask(1)
	good := task.StepArgs()
	stolen := p.NewTask(1)
	stolen.TaskID = task.TaskID
	byAnother := good
	byAnother.PoP = stolen.Proved(good).PoP
	overOthers := good
	overOthers.TaskID = routertest.TaskID("x")
	for name, a := range map[string]catalog.Step{"by another key": byAnother, "over other arguments": overOthers} {
		if got := w.Do(p.StepIntent(a)); got.Code != intents.SignatureInvalid || got.Pointer != "/intent/args/pop" {
			t.Errorf("%s: %s at %s", name, got.Code, got.Pointer)
		}
	}
	w.OK(p.StepIntent(good))
}

// One key introduced by two steps at once opens one task.
func TestStepKeyRace(t *testing.T) {
	for range 20 {
		w := routertest.New(t, routertest.Options{})
		p, q := w.Begun("p1", "a"), w.Begun("p2", "a")
		one, two := p.NewTask(1), q.NewTask(1)
		two.Key = one.Key
		raws := [][]byte{w.Sign(p.StepIntent(one.StepArgs())), w.Sign(q.StepIntent(two.StepArgs()))}
		codes := make([]intents.Code, 2)
		var all sync.WaitGroup
		for i, raw := range raws {
			all.Go(func() { codes[i] = w.Send(raw).Code })
		}
		all.Wait()
		if (codes[0] == intents.OK) == (codes[1] == intents.OK) {
			t.Fatalf("codes %v", codes)
		}
	}
}

func TestPlanClose(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "a", "b")
	w.Want(p.Complete(), intents.MalformedArgs)
	p.Started(1).Done()
	w.Want(p.Complete(), intents.MalformedArgs)
	p.Started(2).Done()
	w.Want(p.Complete(), intents.OK)
	w.Want(p.Fail(), intents.MalformedArgs)
	w.Want(p.Cancel(w.Gateway), intents.MalformedArgs)
	w.Clock.Move(time.Second)
	if a := w.Want(p.Complete(), intents.OK); !a.Replayed {
		t.Error("the same close again is no duplicate")
	}
	ask := w.Begun("p2", "a", "b")
	w.Want(ask.Asks("Which?"), intents.OK)
	if v := ask.View(); v.Status != catalog.PlanNeedsInput || v.Response != "Which?" || v.CompletedAt == nil {
		t.Errorf("%+v", v)
	}
	w.Want(ask.Complete(), intents.MalformedArgs)
}

// TestLookUpIsNoReplan: the first revision after a look-up that needs a plan is counted as none; a
// later one is.
func TestLookUpIsNoReplan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "a")
	for revision, replans := range []int{0, 1} {
		task := p.Started(revision + 1)
		w.OK(task.Intent("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "insufficient", Reason: "the request needs a plan", Cause: catalog.NeedsPlan}))
		if v := p.View(); v.Status != catalog.PlanReplanning || v.ReplanCount != replans || len(v.History) != replans {
			t.Fatalf("%+v", v)
		}
		if revision == 0 {
			w.Want(p.Plan(routertest.Steps(2, "a")), intents.OK)
		}
	}
}

// cancel ends the plan for whoever may: gateway, manager, the tenant's operator.
func TestCancel(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "a", "b")
	p.Started(1).Done()
	p.Started(2)
	bob := w.AddOperator("default", "bob", "admin")
	o := routertest.Intent{By: bob, User: "bob", Tenant: "default", Type: "cancel", Args: catalog.Cancel{PlanID: routertest.PlanID("p1"), Reason: "enough"}}
	w.OK(o)
	v := p.View()
	if v.Status != catalog.PlanFailed || v.Failure.Reason != "cancelled by bob: enough" || fmt.Sprint(v.Failure.CompletedSteps) != "[1]" || v.Steps[1].Status != catalog.StepInterrupted {
		t.Errorf("%+v", v)
	}
}
