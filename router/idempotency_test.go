package router_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// started is a task of step 1 with skill feed, pinned with an effect.
func started(w *routertest.World, effect catalog.Effect) *routertest.Task {
	w.Helper()
	w.Pin("feed", effect)
	return w.Begun("p1", "feed").Started(1)
}

// receipt opens a receipt.
func receipt(w *routertest.World, a *intents.Answer) intents.Receipt {
	w.Helper()
	r, err := intents.OpenReceipt(a.Receipt, w.Dir.View())
	w.Must(err)
	return r
}

// The same intent again, in the same bytes or with a new signature, is the first one: same
// intent_id, outcome and receipt, no record, one effect.
func TestReplay(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	raw := w.Sign(task.CallIntent("feed", `{"a":1}`))
	first := w.Want(w.Send(raw), intents.OK)
	if first.Replayed {
		t.Fatal("the first is replayed")
	}
	before := w.Journal.Next()
	w.Clock.Move(time.Second)
	for name, again := range map[string][]byte{"same bytes": raw, "signed anew": w.Sign(task.CallIntent("feed", `{"a":1}`))} {
		a := w.Want(w.Send(again), intents.OK)
		if !a.Replayed || a.IntentID != first.IntentID || *a.Position != *first.Position || a.Receipt != first.Receipt || string(a.Outcome.Result) != string(first.Outcome.Result) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if n := len(w.Bus.Calls("skill.call")); n != 1 || w.Journal.Next() != before {
		t.Errorf("%d effects, %d new records", n, w.Journal.Next()-before)
	}
	r := receipt(w, first)
	if r.IntentID != first.IntentID || r.Position != *first.Position || r.Code != intents.OK || r.OutcomeDigest == "" || r.Issuer != w.Origin {
		t.Errorf("receipt %+v", r)
	}
}

// A duplicate is answered whatever has ended since: the task, its plan, the epoch.
func TestReplayAfterTheEnd(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	call, claim := w.Sign(task.CallIntent("feed", `{}`)), w.Sign(task.ClaimIntent(2))
	w.Want(w.Send(call), intents.OK)
	w.Want(w.Send(claim), intents.OK)
	w.Want(task.Cancel(w.Gateway), intents.OK)
	for name, raw := range map[string][]byte{"call": call, "claim": claim} {
		if a := w.Want(w.Send(raw), intents.OK); !a.Replayed {
			t.Errorf("%s is not replayed", name)
		}
	}
	w.Want(task.Call("feed", `{"new":true}`), intents.KeyRevoked)
}

// Stage 6 judges a duplicate, and a refused one leaves no record and learns nothing of the first.
func TestReplayIsJudgedByRBAC(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Key = "k"
	w.OK(o)
	before := w.Journal.Next()
	o.Roles = []string{"auditor"}
	a := w.Want(w.Do(o), intents.RBACForbidden)
	if a.Position != nil || a.Outcome != nil || a.Receipt != "" || w.Journal.Next() != before {
		t.Errorf("%+v, %d new records", a, w.Journal.Next()-before)
	}
}

// The key belongs to (tenant, user, type): others use the same one freely.
func TestKeyIsScoped(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Key = "k"
	w.OK(o)
	o.User = "bob"
	if a := w.OK(o); a.Replayed {
		t.Error("bob got ana's answer")
	}
	w.OK(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}, Key: "k"})
}

// A retryable failure frees the key for the same intent, not for another.
func TestRetryableFailureFreesTheKey(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	raw := w.Sign(task.CallIntent("feed", `{}`))
	w.Bus.On("skill.call", nil)
	if a := w.Want(w.Send(raw), intents.DispatchUnavailable); !a.Outcome.Retryable {
		t.Fatalf("%+v", a.Outcome)
	}
	other := find(w)
	other.By, other.Type, other.Args, other.Ctx = task.Key, "skill.call", catalog.SkillCall{Skill: "feed", From: "f"}, task.CallIntent("feed", "{}").Ctx
	other.Key = intents.Fingerprint(intents.Spec{Type: "skill.call", Args: []byte(`{"input":{},"skill":"feed"}`)}, "ana", withSession(other.Ctx))
	w.Want(w.Do(other), intents.ConflictIdempotency)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	if a := w.Want(w.Send(raw), intents.OK); a.Replayed {
		t.Error("replayed a failure as done")
	}
	if a := w.Want(w.Send(raw), intents.OK); !a.Replayed {
		t.Error("the second attempt is not the holder")
	}
}

func withSession(c intents.Context) intents.Context {
	c.SessionID, c.TurnID = routertest.Session, routertest.Turn
	return c
}

// A once intent that its executor failed without effect may be sent again too.
func TestRetryableFailureOfOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	w.Bus.On("skill.call", routertest.Always(intents.Report{Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "nothing was sent", Retryable: true}))
	w.Want(task.Call("feed", `{}`), intents.ExecutorFailed)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Want(task.Call("feed", `{}`), intents.OK)
}

// A final failure keeps the key: the same intent gets the same answer.
func TestFinalFailureKeepsTheKey(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	w.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed)))
	first := w.Want(task.Call("feed", `{}`), intents.ExecutorFailed)
	again := w.Want(task.Call("feed", `{}`), intents.ExecutorFailed)
	if !again.Replayed || again.Receipt != first.Receipt || len(w.Bus.Calls("skill.call")) != 1 {
		t.Errorf("%+v", again)
	}
}

// A refused intent never takes its key.
func TestRefusalTakesNoKey(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Key, o.Roles = "k", []string{"auditor"}
	w.Want(w.Do(o), intents.RBACForbidden)
	o.Roles = nil
	if a := w.OK(o); a.Replayed {
		t.Error("replayed")
	}
}

// gate lets an executor answer when the test allows it.
type gate struct{ began, answer chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 1000), make(chan struct{})} }

func (g gate) executor(r intents.Report) routertest.Executor {
	return func(ctx context.Context, _ routertest.Call) intents.Report {
		g.began <- struct{}{}
		select {
		case <-g.answer:
			return r
		case <-ctx.Done():
			return routertest.Failed(intents.ExecutorTimeout)
		}
	}
}

// While the first is being executed, the same intent is IN_FLIGHT, names it, and can be awaited.
func TestInFlight(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	g := newGate()
	w.Bus.On("skill.call", g.executor(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	raw := w.Sign(task.CallIntent("feed", `{}`))
	first := make(chan *intents.Answer, 1)
	go func() { first <- w.Send(raw) }()
	<-g.began
	before := w.Journal.Next()
	dup := w.Want(w.Send(raw), intents.InFlight)
	if dup.Receipt != "" || dup.Outcome != nil || w.Journal.Next() != before {
		t.Errorf("%+v", dup)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Router.Await(gone, *dup.Position); err == nil {
		t.Error("waited without a caller")
	}
	waited := make(chan *intents.Answer, 1)
	go func() {
		a, err := w.Router.SubmitAndWait(t.Context(), raw, time.Minute)
		if err != nil {
			t.Error(err)
		}
		waited <- a
	}()
	close(g.answer)
	a, b := <-first, <-waited
	if a.Code != intents.OK || b == nil || b.Code != intents.OK || !b.Replayed || a.Receipt != b.Receipt {
		t.Errorf("first %+v, waited %+v", a, b)
	}
}

// TestRepeatAfterErasure: an erased envelope does not say any more what was asked for. Its own signed
// bytes are still recognized; any other intent under the key is refused, with what to do.
func TestRepeatAfterErasure(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Key = "ana@example.org"
	raw := w.Sign(o)
	first := w.Want(w.Send(raw), intents.OK)
	w.Clock.Move(time.Second)
	if a := w.Want(w.Do(o), intents.OK); !a.Replayed {
		t.Fatal("signed anew, it is no duplicate before the erasure")
	}
	w.Want(erase(w, first, catalog.ErasesEnvelope), intents.OK)
	for range 2 {
		if a := w.Want(w.Send(raw), intents.OK); !a.Replayed || a.IntentID != first.IntentID || a.Receipt != first.Receipt {
			t.Errorf("the same bytes: %+v", a)
		}
		w.Clock.Move(time.Second)
		a := w.Want(w.Do(o), intents.ConflictIdempotency)
		if !strings.Contains(a.Reason, "erased") || !strings.Contains(a.Hint, "another idempotency key") || a.Pointer != "/constraints/idempotency_key" {
			t.Errorf("signed anew: %+v", a)
		}
		w = w.Restart()
	}
}
