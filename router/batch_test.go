package router_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// batchOf is a batch of signed intents.
func batchOf(raws ...[]byte) []byte {
	return fmt.Appendf(nil, `{"atomic":true,"intents":[%s]}`, bytes.Join(raws, []byte(",")))
}

// calls are n signed calls of one task, in order.
func calls(w *routertest.World, task *routertest.Task, n int) [][]byte {
	w.Helper()
	var out [][]byte
	for i := range n {
		out = append(out, w.Sign(task.CallIntent("feed", fmt.Sprintf(`{"n":%d}`, i))))
	}
	return out
}

// submitted checks the code of a batch.
func submitted(w *routertest.World, raw []byte, code intents.Code) *intents.BatchAnswer {
	w.Helper()
	b := w.Router.SubmitBatch(w.Context(), raw, 0)
	if b.Code != code {
		w.Fatalf("%s at %s: %s, want %s", b.Code, b.Pointer, b.Reason, code)
	}
	return b
}

// codes of the answers.
func codes(b *intents.BatchAnswer) string {
	var out []intents.Code
	for _, a := range b.Answers {
		out = append(out, a.Code)
	}
	return fmt.Sprint(out)
}

// Intents of a batch are committed together and executed one after the other; the same batch again
// gets the same answer.
func TestBatch(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	before := w.Journal.Next()
	raw := batchOf(append(calls(w, task, 3), w.Sign(w.NewPlan("p2").OpenIntent()))...)
	first := submitted(w, raw, intents.OK)
	if codes(first) != "[OK OK OK OK]" || first.Index != nil || first.Fault != nil {
		t.Fatalf("%+v", first)
	}
	for i, a := range first.Answers {
		if r := receipt(w, a); *a.Position != before+int64(i) || r.Position != *a.Position || a.Replayed || a.Decision.Batch.Index != i || a.Decision.Batch.Size != 4 {
			t.Errorf("intent %d: %+v", i, a)
		}
	}
	for i, c := range w.Bus.Calls("skill.call") {
		if want := fmt.Sprintf(`{"input":{"n":%d},"skill":"feed"}`, i); string(c.Body.Intent.Args) != want {
			t.Errorf("call %d: %s", i, c.Body.Intent.Args)
		}
	}
	at := w.Journal.Next()
	for i, a := range submitted(w, raw, intents.OK).Answers {
		if !a.Replayed || a.Receipt != first.Answers[i].Receipt {
			t.Errorf("again, intent %d: %+v", i, a)
		}
	}
	if n := len(w.Bus.Calls("skill.call")); n != 3 || w.Journal.Next() != at {
		t.Errorf("%d effects, %d records", n, w.Journal.Next()-at)
	}
}

// failing makes the call of a number fail, as often as times says.
func failing(w *routertest.World, number int, times int, report intents.Report) {
	w.Bus.On("skill.call", func(_ context.Context, c routertest.Call) intents.Report {
		if bytes.Contains(c.Body.Intent.Args, fmt.Appendf(nil, `"n":%d`, number)) && times > 0 {
			times--
			return report
		}
		return routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})
	})
}

func noneOpen(w *routertest.World) {
	w.Helper()
	open, err := w.Journal.OpenIntents(w.Context())
	w.Must(err)
	if len(open) != 0 {
		w.Errorf("open: %v", open)
	}
}

// A batch stops at the first intent that fails; later ones are not executed and free their keys.
// Sent again it continues there.
func TestBatchStops(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	failing(w, 1, 1, intents.Report{Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "busy", Retryable: true})
	raw := batchOf(calls(w, task, 3)...)
	b := submitted(w, raw, intents.ExecutorFailed)
	if codes(b) != "[OK EXECUTOR_FAILED CANCELLED]" || *b.Index != 1 || b.Pointer != "/intents/1" || !b.Answers[2].Outcome.Retryable {
		t.Fatalf("%+v", b)
	}
	if noneOpen(w); len(w.Bus.Calls("skill.call")) != 2 {
		t.Errorf("%d dispatched", len(w.Bus.Calls("skill.call")))
	}
	again := submitted(w, raw, intents.OK)
	if n := len(w.Bus.Calls("skill.call")); n != 4 || !again.Answers[0].Replayed || again.Answers[1].Replayed {
		t.Errorf("%d dispatched, %+v", n, again)
	}
}

// After an intent that failed for good no more of the same batch is accepted; the rest can be sent
// without it.
func TestBatchStopsForGood(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	failing(w, 0, 9, routertest.Failed(intents.ExecutorFailed))
	raws := calls(w, task, 2)
	submitted(w, batchOf(raws...), intents.ExecutorFailed)
	before := w.Journal.Next()
	if b := submitted(w, batchOf(raws...), intents.ExecutorFailed); b.Answers != nil || *b.Index != 0 || w.Journal.Next() != before {
		t.Errorf("%+v", b)
	}
	submitted(w, batchOf(raws[1]), intents.OK)
}

// All or none: if one intent is refused, none is accepted and no key is taken. A refusal that has a
// record on its own has it here too.
func TestBatchAllOrNone(t *testing.T) {
	for _, c := range []struct {
		name, pointer string
		code          intents.Code
		records       int64
		bad           func(w *routertest.World, task *routertest.Task) []byte
	}{
		{"malformed", "/intents/1/extra", intents.SchemaInvalid, 0, func(w *routertest.World, _ *routertest.Task) []byte {
			return bytes.Replace(w.Sign(find(w)), []byte(`"version"`), []byte(`"extra":1,"version"`), 1)
		}},
		{"signature", "/intents/1/sig", intents.SignatureInvalid, 0, func(w *routertest.World, _ *routertest.Task) []byte {
			return bytes.Replace(w.Sign(find(w)), []byte("quakes"), []byte("Quakes"), 1)
		}},
		{"expired", "/intents/1/constraints/ttl_sec", intents.ExpiredTTL, 0, func(w *routertest.World, _ *routertest.Task) []byte {
			o := find(w)
			o.At = w.Clock.Now().Add(-time.Hour)
			return w.Sign(o)
		}},
		{"tenant", "/intents/1/actor/tenant", intents.RBACForbidden, 0, func(w *routertest.World, _ *routertest.Task) []byte {
			return w.Sign(routertest.Intent{By: w.Operator, Type: "intent.resolve", Args: struct{}{}})
		}},
		{"schema", "/intents/1/intent/args/colour", intents.SchemaInvalid, 1, func(w *routertest.World, _ *routertest.Task) []byte {
			o := find(w)
			o.Args = map[string]string{"colour": "red"}
			return w.Sign(o)
		}},
		{"rbac", "/intents/1/actor", intents.RBACForbidden, 1, func(w *routertest.World, _ *routertest.Task) []byte {
			o := find(w)
			o.Roles = []string{"auditor"}
			return w.Sign(o)
		}},
		{"held", "/intents/1", intents.MalformedArgs, 0, func(w *routertest.World, task *routertest.Task) []byte {
			return w.Sign(task.CallIntent("pay", `{}`))
		}},
		{"one key", "/intents/1/constraints/idempotency_key", intents.ConflictIdempotency, 0, func(w *routertest.World, task *routertest.Task) []byte {
			return w.Sign(task.CallIntent("feed", `{"n":0}`))
		}},
		{"a repetition", "/intents/1", intents.MalformedArgs, 0, func(w *routertest.World, task *routertest.Task) []byte {
			o := task.CallIntent("feed", `{"n":0}`)
			o.Key = "another"
			return w.Sign(o)
		}},
		{"too late", "/intents/1", intents.MalformedArgs, 0, func(w *routertest.World, task *routertest.Task) []byte {
			return w.Sign(task.CancelIntent(w.Manager))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			w.Pin("pay", catalog.Once)
			w.Approval(`{"skills":["pay"]}`, "zoe")
			w.Pin("feed", catalog.Once)
			p := w.NewPlan("p1")
			p.Want(p.Open(), intents.OK)
			p.Want(p.Claim(), intents.OK)
			steps := routertest.Steps(1, "feed")
			steps[0].Skills = append(steps[0].Skills, "pay")
			p.Want(p.Plan(steps), intents.OK)
			task := p.Started(1)
			good := w.Sign(task.CallIntent("feed", `{"n":0}`))
			raw := batchOf(good, c.bad(w, task))
			before := w.Journal.Next()
			b := submitted(w, raw, c.code)
			if b.Answers != nil || *b.Index != 1 || b.Pointer != c.pointer || b.Fault == nil || b.Fault.Code != c.code || b.Reason == "" {
				t.Errorf("%+v %+v", b, b.Fault)
			}
			if n := w.Journal.Next() - before; n != c.records || len(w.Bus.Calls("skill.call")) != 0 {
				t.Errorf("%d records, want %d; %d effects", n, c.records, len(w.Bus.Calls("skill.call")))
			}
			if a := w.Want(w.Send(good), intents.OK); a.Replayed {
				t.Error("its key was taken")
			}
		})
	}
}

// Two transitions of one plan, and two changes of one directory, do not go together.
func TestBatchRests(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	p.Want(p.Open(), intents.OK)
	one, two := p.ClaimIntent(1), p.ClaimIntent(1)
	two.Args = catalog.PlanClaim{PlanID: routertest.PlanID("p1"), Epoch: 1, Driver: "other"}
	submitted(w, batchOf(w.Sign(one), w.Sign(two)), intents.MalformedArgs)
	put := func(key string) []byte {
		return w.Sign(routertest.Intent{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: key, Value: []byte("1")}}})
	}
	submitted(w, batchOf(put("x.a"), put("x.b")), intents.MalformedArgs)
	submitted(w, batchOf(put("x.a")), intents.OK)
	submitted(w, batchOf(w.Sign(one), w.Sign(w.NewPlan("p2").OpenIntent())), intents.OK)
}

// Intents of the router take effect with the commit, wherever they are in the batch: one that ends
// what an earlier call depends on would end it before the call is executed.
func TestBatchEndsNothingBefore(t *testing.T) {
	for _, effect := range []catalog.Effect{catalog.Pure, catalog.Idempotent, catalog.Once} {
		w := routertest.New(t, routertest.Options{})
		task := started(w, effect)
		call := w.Sign(task.CallIntent("feed", `{"n":0}`))
		failed := catalog.PlanClose{PlanID: task.ID, Epoch: task.Epoch, Status: "failed", Failure: &catalog.Failure{Reason: "infeasible", CompletedSteps: []int{}}}
		for name, end := range map[string]routertest.Intent{
			"plan.close":  {By: w.Manager, Type: "plan.close", Args: failed, Ctx: intents.Context{PlanID: task.ID}},
			"cancel":      task.CancelIntent(w.Gateway),
			"step.finish": task.Intent("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "failed", Reason: "no rows"}),
			"plan.claim":  task.ClaimIntent(task.Epoch + 1),
		} {
			b := submitted(w, batchOf(call, w.Sign(end)), intents.MalformedArgs)
			if b.Answers != nil || *b.Index != 1 || len(w.Bus.Calls("skill.call")) != 0 {
				t.Errorf("%s, then %s: %+v", effect, name, b)
			}
		}
		submitted(w, batchOf(call), intents.OK)
	}
}

// What a batch reads may change before its commit: all of it is decided again.
func TestBatchStale(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Pure)
	j.beforeCommit = func() { w.Data("skills_allow", `["other"]`) }
	before := w.Journal.Next()
	b := submitted(w, batchOf(calls(w, task, 2)...), intents.PolicyDenied)
	if len(b.Fault.Decision.PolicyIDs) == 0 || w.Journal.Next()-before != 4 { // two of the change, two denials
		t.Errorf("%+v, %d records", b, w.Journal.Next()-before)
	}
}

// A key that another submission takes between decision and commit.
func TestBatchLost(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Once)
	raws := calls(w, task, 2)
	j.beforeCommit = func() { w.Want(w.Send(raws[1]), intents.OK) }
	b := submitted(w, batchOf(raws...), intents.OK)
	if b.Answers[0].Replayed || !b.Answers[1].Replayed || len(w.Bus.Calls("skill.call")) != 2 {
		t.Errorf("%+v", b)
	}
}

// Whether a batch that failed to commit was written is unknown; sent again it is executed once at
// most.
func TestBatchUnknown(t *testing.T) {
	for _, persists := range []bool{false, true} {
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Once)
		raw := batchOf(calls(w, task, 2)...)
		inMemory(w).FailNext(errDisk, persists)
		if b := submitted(w, raw, intents.InFlight); b.Answers != nil {
			t.Errorf("%+v", b)
		}
		if !persists {
			submitted(w, raw, intents.OK)
			continue
		}
		submitted(w, raw, intents.InFlight)
		w = w.Restart()
		noneOpen(w)
		if b := submitted(w, raw, intents.Indeterminate); b.Answers != nil || *b.Index != 0 || len(w.Bus.Calls("skill.call")) != 0 {
			t.Errorf("%+v", b)
		}
	}
}

// While a batch is being executed it is in flight, and can be awaited.
func TestBatchInFlight(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	g := newGate()
	w.Bus.On("skill.call", g.executor(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	raw := batchOf(calls(w, task, 2)...)
	first, waited := make(chan *intents.BatchAnswer, 1), make(chan *intents.BatchAnswer, 1)
	go func() { first <- w.Router.SubmitBatch(t.Context(), raw, 0) }()
	<-g.began
	if b := submitted(w, raw, intents.InFlight); codes(b) != "[IN_FLIGHT IN_FLIGHT]" || *b.Index != 0 {
		t.Errorf("%+v", b)
	}
	fresh := append(calls(w, task, 1), w.Sign(find(w)))
	if b := submitted(w, batchOf(fresh...), intents.InFlight); b.Answers != nil {
		t.Errorf("%+v", b)
	}
	go func() { waited <- w.Router.SubmitBatch(t.Context(), raw, time.Minute) }()
	close(g.answer)
	a, b := <-first, <-waited
	if a.Code != intents.OK || b.Code != intents.OK || a.Answers[1].Receipt != b.Answers[1].Receipt {
		t.Errorf("%+v %+v", a, b)
	}
}

// A crash ends the intent that was being executed by its effect, and the batch.
func TestBatchCrash(t *testing.T) {
	for effect, want := range map[catalog.Effect]string{
		catalog.Idempotent: "[OK OK CANCELLED]", catalog.Pure: "[OK ABANDONED CANCELLED]", catalog.Once: "[OK INDETERMINATE CANCELLED]",
	} {
		w := routertest.New(t, routertest.Options{})
		task := started(w, effect)
		died, at := make(chan struct{}), make(chan struct{})
		usual := w.Bus.Executor("skill.call")
		w.Bus.On("skill.call", func(ctx context.Context, c routertest.Call) intents.Report {
			if !bytes.Contains(c.Body.Intent.Args, []byte(`"n":1`)) {
				return usual(ctx, c)
			}
			return dies(at, died)(ctx, c)
		})
		before := w.Journal.Next()
		raw := batchOf(calls(w, task, 3)...)
		go w.Router.SubmitBatch(context.WithoutCancel(t.Context()), raw, 0)
		<-at
		next := w.Reopen()
		w.Must(w.Journal.(interface{ Close() error }).Close())
		close(died)
		next.Bus.On("skill.call", usual)
		next.Start()
		noneOpen(next)
		var got []intents.Code
		for i := range int64(3) {
			got = append(got, outcome(next, before+i).Code)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", effect, got, want)
		}
		// A second start loses nothing either.
		noneOpen(next.Restart())
	}
}

// A crash after a failed intent, and before those after it were cancelled: recovery executes none
// of them either.
func TestBatchCrashAfterAFailure(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Idempotent)
	failing(w, 0, 9, routertest.Failed(intents.ExecutorFailed))
	began, died := make(chan struct{}), make(chan struct{})
	j.beforeFinish = func(n int) {
		if n == 2 { // the first cancellation
			close(began)
			<-died
		}
	}
	before := w.Journal.Next()
	raw := batchOf(calls(w, task, 3)...)
	go w.Router.SubmitBatch(context.WithoutCancel(t.Context()), raw, 0)
	<-began
	next := w.Reopen()
	w.Must(w.Journal.(interface{ Close() error }).Close())
	close(died)
	next.Start()
	noneOpen(next)
	var got []intents.Code
	for i := range int64(3) {
		got = append(got, outcome(next, before+i).Code)
	}
	if fmt.Sprint(got) != "[EXECUTOR_FAILED CANCELLED CANCELLED]" || len(next.Bus.Calls("skill.call")) != 1 {
		t.Errorf("%v, %d dispatches", got, len(next.Bus.Calls("skill.call")))
	}
}

// Signer and grant are checked again before each turn.
func TestBatchRevoked(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	usual := w.Bus.Executor("skill.call")
	w.Bus.On("skill.call", func(ctx context.Context, c routertest.Call) intents.Report {
		w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"}), intents.OK) //nolint:contextcheck // another caller's intent
		return usual(ctx, c)
	})
	b := submitted(w, batchOf(calls(w, task, 3)...), intents.GrantInvalid)
	if codes(b) != "[OK GRANT_INVALID CANCELLED]" || len(w.Bus.Calls("skill.call")) != 1 || b.Answers[1].Outcome.Retryable {
		t.Errorf("%+v", b)
	}
}

// A batch takes one slot, and frees it however it ends.
func TestBatchSlot(t *testing.T) {
	w := routertest.New(t, routertest.Options{Slots: 1, ChildSlots: 1})
	task := started(w, catalog.Idempotent)
	g := newGate()
	w.Bus.On("skill.call", g.executor(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	done := make(chan *intents.BatchAnswer, 1)
	raws := calls(w, task, 4)
	go func() { done <- w.Router.SubmitBatch(t.Context(), batchOf(raws[:2]...), 0) }()
	<-g.began
	if b := submitted(w, batchOf(raws[2:]...), intents.Overloaded); b.Answers != nil || b.Index != nil {
		t.Errorf("%+v", b)
	}
	close(g.answer)
	if b := <-done; b.Code != intents.OK {
		t.Errorf("%+v", b)
	}
	inMemory(w).FailNext(storage.ErrFull, false)
	submitted(w, batchOf(raws[2:]...), intents.Overloaded)
	submitted(w, batchOf(raws[2:]...), intents.OK)
	w.Want(task.Call("feed", `{"n":9}`), intents.OK)
}

func TestBatchDryRun(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Roles = []string{"user", "auditor"}
	before, counted := w.Journal.Next(), fmt.Sprint(w.Router.Counts())
	if b := w.Router.DryRunBatch(t.Context(), batchOf(w.Sign(o), w.Sign(o))); codes(b) != "[OK OK]" || b.Answers[1].Position != nil || b.Answers[0].Decision == nil {
		t.Errorf("%+v", b)
	}
	if b := w.Router.DryRunBatch(t.Context(), batchOf(w.Sign(o), w.Sign(find(w)))); b.Code != intents.RBACForbidden || *b.Index != 1 {
		t.Errorf("%+v", b)
	}
	o.Type, o.Args = "skill.load", catalog.SkillLoad{Skill: "x"}
	if b := w.Router.DryRunBatch(t.Context(), batchOf(w.Sign(o))); b.Code != intents.PolicyDenied || b.Fault == nil {
		t.Errorf("%+v", b)
	}
	if w.Journal.Next() != before || fmt.Sprint(w.Router.Counts()) != counted || len(w.Bus.Calls("skill.find")) != 0 {
		t.Error("a dry run left a trace")
	}
}
