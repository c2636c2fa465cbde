package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// unknownCall makes a once call of a skill indeterminate.
func unknownCall(t *testing.T) (*routertest.World, routertest.Intent, *intents.Answer) {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	call := task.CallIntent("feed", `{"n":1}`)
	w, open := left(w, call)
	w.Start()
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	return w, call, open
}

func TestResolveDone(t *testing.T) {
	w, call, open := unknownCall(t)
	w.Want(w.Do(call), intents.Indeterminate)
	w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: open.IntentID, Status: "done", Reason: "seen at the other end"}), intents.OK)
	again := w.Want(w.Do(call), intents.OK)
	if !again.Replayed || again.IntentID != open.IntentID {
		t.Errorf("%+v", again)
	}
	if calls := len(w.Bus.Calls("skill.call")); calls != 1 { // the one that died
		t.Errorf("called %d times", calls)
	}
	w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: open.IntentID, Status: "failed", Reason: "twice"}), intents.MalformedArgs)
}

func TestResolveFailed(t *testing.T) {
	w, call, open := unknownCall(t)
	w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: open.IntentID, Status: "failed", Reason: "never arrived"}), intents.OK)
	again := w.Want(w.Do(call), intents.OK) // the key is free for the same intent
	if again.Replayed || *again.Position == *open.Position {
		t.Errorf("%+v", again)
	}
}

func TestResolveOfAnother(t *testing.T) {
	w, _, open := unknownCall(t)
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	stranger := w.AddOperator("acme", "eve", "admin")
	w.Want(w.Do(routertest.Intent{
		By: stranger, Tenant: "acme", User: "eve", Type: "intent.resolve",
		Args: catalog.IntentResolve{IntentID: open.IntentID, Status: "failed", Reason: "x"},
	}), intents.MalformedArgs)
	w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: intents.Digest([]byte(open.IntentID)), Status: "failed", Reason: "x"}), intents.MalformedArgs)
}

// A completed step had its effect; another step may request the same again.
func TestEqualOnceIntentOfAnotherStep(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Pin("feed", catalog.Once)
	p := w.Begun("p1", "feed", "feed")
	task := p.Started(1)
	w.Want(task.Call("feed", `{"n":1}`), intents.OK)
	task.Done()
	w.Want(p.Started(2).Call("feed", `{"n":1}`), intents.OK)
	if calls := len(w.Bus.Calls("skill.call")); calls != 2 {
		t.Errorf("called %d times", calls)
	}
}
