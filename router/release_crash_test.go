package router_test

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// A restart at any point of a hold loses nothing: held, between approvals, after the release, and
// after the outcome.
func TestHoldSurvives(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
	x = x.on(x.Restart())
	x.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	x = x.on(x.Restart())
	x.Want(x.says("ben", catalog.DecisionApprove), intents.MalformedArgs)
	if got := x.state(x.says("cleo", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased || len(got.Approved) != 2 {
		t.Errorf("%+v", got)
	}
	out := x.Want(x.outcome(), intents.OK)
	x = x.on(x.Restart())
	if again := x.Want(x.outcome(), intents.OK); again.Receipt != out.Receipt || len(x.Bus.Calls("skill.call")) != 1 {
		t.Errorf("%+v", again)
	}
	if got := x.Dir.Silent(0); len(got) != 1 {
		t.Errorf("silent %+v", got)
	}
}

// The process dies after the release: the intent is open, and its effect determines how it ends.
// Nobody is asked again.
func TestCrashAfterRelease(t *testing.T) {
	for effect, want := range map[catalog.Effect]intents.Code{
		catalog.Once: intents.Indeterminate, catalog.Idempotent: intents.OK, catalog.Pure: intents.Abandoned,
	} {
		t.Run(string(effect), func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			x := heldCall(w, effect, `{"skills":["pay"]}`)
			calls, died := make(chan struct{}), make(chan struct{})
			usual := w.Bus.Executor("skill.call")
			w.Bus.On("skill.call", dies(calls, died))
			w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
			<-calls
			x = x.on(w.Reopen())
			x.Must(w.Journal.(interface{ Close() error }).Close())
			close(died)
			x.Bus.On("skill.call", usual)
			x.Start()
			x.Want(x.outcome(), want)
			if s, steps := x.task.Status(); s != catalog.PlanExecuting || steps[0] != catalog.StepPending {
				t.Errorf("plan %s, steps %v", s, steps)
			}
			x.Want(x.says("cleo", catalog.DecisionApprove), intents.MalformedArgs)
		})
	}
}

// Of concurrent last approvals, through two routers over one journal, one releases.
func TestLastApprovalsAtOnce(t *testing.T) {
	dir := state.New()
	w := routertest.New(t, routertest.Options{Also: dir.Observe})
	var who []string
	for _, x := range strings.Split("abcdefgh", "") {
		who = append(who, "p"+x)
		user(w, "p"+x, "approver")
		apiKey(w, "p"+x)
	}
	x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
	other, err := router.New(router.Config{
		Journal: w.Journal, Records: w.Journal, State: dir, Blobs: nil, Bus: w.Bus, Key: w.Signer, KeySecret: routertest.KeySecret, Policy: w.Policy, Now: w.Clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	w.Must(err)
	signed := map[string][]byte{}
	for _, p := range who {
		signed[p] = w.Sign(x.word(p, catalog.DecisionApprove))
	}
	var wg sync.WaitGroup
	answers := make(chan *intents.Answer, len(who))
	for i, p := range who {
		r := w.Router
		if i%2 == 1 {
			r = other
		}
		wg.Go(func() {
			a, err := r.Submit(t.Context(), signed[p])
			if err != nil {
				a = router.RefusalAnswer(signed[p], err)
			}
			answers <- a
		})
	}
	wg.Wait()
	close(answers)
	states := map[string]int{}
	for a := range answers {
		if a.Code != intents.OK {
			states[string(a.Code)]++
			continue
		}
		states[x.state(a).State]++
	}
	if states[catalog.ApprovalPending] != 1 || states[catalog.ApprovalReleased] != 1 || states[string(intents.MalformedArgs)] != len(who)-2 {
		t.Errorf("%v", states)
	}
	w.Want(x.outcome(), intents.OK)
	releases := 0
	for _, rec := range w.Records() {
		if rec.Kind == storage.KindRelease {
			releases++
		}
	}
	if n := len(w.Bus.Calls("skill.call")); releases != 1 || n != 1 {
		t.Errorf("%d releases, %d effects", releases, n)
	}
}

// An approval and the deadline at once: one of them ends the hold.
func TestApprovalMeetsDeadline(t *testing.T) {
	w, b := interposed(t)
	x := heldCall(w, catalog.Once, `{"once":true}`)
	o := w.Sign(x.word("ben", catalog.DecisionApprove))
	b.commit = func() {
		w.Clock.Move(intents.MaxHold)
		w.Must(w.Router.ExpireHolds(t.Context()))
	}
	w.Send(o)
	w.Want(x.outcome(), intents.ApprovalExpired)
	if n := len(w.Bus.Calls("skill.call")); n != 0 {
		t.Errorf("%d effects", n)
	}
}

// The executor gets what "from" named when the intent was held, although the file is gone and the
// intent is released a day later.
func TestHeldInputs(t *testing.T) {
	w, blobs, _ := withBlobs(t)
	people(w)
	w.Pin("send", catalog.Once)
	w.Data("approval", `{"skills":["send"]}`)
	p := w.NewPlan("p9")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Plan(routertest.Steps(1, "send")), intents.OK)
	task := p.Started(1)
	scope := storage.Scope{Tenant: "default", Plan: routertest.PlanID("p9"), Revision: 1, Step: 1}
	file, err := blobs.Put(t.Context(), scope, strings.NewReader("the bytes of then"))
	w.Must(err)
	held := w.Want(w.Do(task.Intent("skill.call", catalog.SkillCall{Skill: "send", From: file.ID})), intents.ApprovalRequired)
	w.Must(blobs.Wipe(t.Context(), scope))
	w = w.Restart()
	x := releaseWorld{w, &routertest.Task{Plan: p.On(w), TaskID: task.TaskID, Key: task.Key, Step: 1, Revision: 1}, held}
	if args := x.shown(t); args != `{"from":"`+file.ID+`","input":"the bytes of then","skill":"send"}` {
		t.Errorf("ben is shown %s", args)
	}
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	w.Want(x.outcome(), intents.OK)
	calls := w.Bus.Calls("skill.call")
	if len(calls) != 1 || len(calls[0].Ticket.Inputs) != 1 {
		t.Fatalf("%+v", calls)
	}
	in := calls[0].Ticket.Inputs[0]
	f, _, err := blobs.Fetch(t.Context(), "default", in.Ref)
	w.Must(err)
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "the bytes of then" || in.SHA256 != file.SHA256 || in.Pointer != "/input" {
		t.Errorf("%+v: %q %v", in, got, err)
	}
}

// shown are the arguments that ben sees before he decides.
func (x releaseWorld) shown(t *testing.T) string {
	t.Helper()
	page, err := x.Router.Inbox(t.Context(), intents.Grant{Subject: "ben", Tenant: "default", Roles: []string{"approver"}}, bus.ApprovalsRequest{IntentID: x.held.IntentID})
	if err != nil || len(page.Approvals) != 1 {
		t.Fatalf("%+v %v", page, err)
	}
	return string(page.Approvals[0].Args)
}

// If an input is large, or two readers take it for different values, approvers are shown its
// digest.
func TestHeldInputsOutOfSight(t *testing.T) {
	w, blobs, _ := withBlobs(t)
	people(w)
	w.Pin("send", catalog.Once)
	w.Data("approval", `{"skills":["send"]}`)
	task := w.Begun("p9", "send").Started(1)
	scope := storage.Scope{Tenant: "default", Plan: routertest.PlanID("p9"), Revision: 1, Step: 1}
	for name, text := range map[string]string{"large": strings.Repeat("x", policies.MaxInputSize), "ambiguous": `{"a":1,"a":2}`} {
		file, err := blobs.Put(t.Context(), scope, strings.NewReader(text))
		w.Must(err)
		x := releaseWorld{w, task, w.Want(w.Do(task.Intent("skill.call", catalog.SkillCall{Skill: "send", From: file.ID})), intents.ApprovalRequired)}
		if args := x.shown(t); !strings.Contains(args, `"input":{"writ.reference":{"sha256":"`+file.SHA256+`"`) {
			t.Errorf("%s: ben is shown %.200s", name, args)
		}
	}
}

// A value that an intent of the step gave remains a value; a missing input is refused at once, and
// nobody is asked.
func TestHeldInputOfAnIntent(t *testing.T) {
	w, _, _ := withBlobs(t)
	people(w)
	w.Pin("send", catalog.Once)
	w.Data("approval", `{"skills":["send"]}`)
	task := w.Begun("p9", "send").Started(1)
	script := w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}))
	a := w.Want(w.Do(task.Intent("skill.call", catalog.SkillCall{Skill: "send", From: "f_none"})), intents.MalformedArgs)
	if a.Decision.Verdict != intents.Deny || a.Decision.Hold != nil || a.Pointer != "/intent/args/from" {
		t.Errorf("%+v", a)
	}
	held := w.Want(w.Do(task.Intent("skill.call", catalog.SkillCall{Skill: "send", From: script.IntentID})), intents.ApprovalRequired)
	x := releaseWorld{w, task, held}
	if args := x.shown(t); !strings.Contains(args, `"input":[1,2],`) {
		t.Errorf("ben is shown %s", args)
	}
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	w.Want(x.outcome(), intents.OK)
	if in := w.Bus.Calls("skill.call")[0].Ticket.Inputs; len(in) != 1 || string(in[0].Value) != `[1,2]` || in[0].Ref != "" {
		t.Errorf("%+v", in)
	}
}

// The inbox is bounded: beyond the bound an intent is not held, and leaves no record.
func TestTooManyHolds(t *testing.T) {
	w := routertest.New(t, routertest.Options{UserHolds: 1})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	before := w.Journal.Next()
	second := w.NewPlan("p2")
	w.Want(second.Open(), intents.OK)
	w.Want(second.Claim(), intents.OK)
	w.Want(second.Plan(routertest.Steps(1, "pay")), intents.OK)
	task := second.Started(1)
	at := w.Journal.Next()
	a := w.Want(task.Call("pay", `{"n":2}`), intents.Overloaded)
	if w.Journal.Next() != at || a.RetryAfter == 0 || before == at {
		t.Errorf("%+v", a)
	}
	w.Want(x.says("ben", catalog.DecisionReject), intents.OK)
	w.Want(task.Call("pay", `{"n":2}`), intents.ApprovalRequired)
}
