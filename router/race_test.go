package router_test

import (
	"context"
	"encoding/json"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// interposer runs a function between two steps of one submission, once.
type interposer struct {
	storage.Journal
	lookup, commit func()
}

func (b *interposer) Lookup(ctx context.Context, k storage.Key) (storage.Holder, bool, error) {
	if run := b.lookup; run != nil {
		b.lookup = nil
		run()
	}
	return b.Journal.Lookup(ctx, k)
}

func (b *interposer) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if run := b.commit; run != nil {
		b.commit = nil
		run()
	}
	return b.Journal.Commit(ctx, c)
}

func interposed(t *testing.T) (*routertest.World, *interposer) {
	t.Helper()
	b := &interposer{}
	return routertest.New(t, routertest.Options{Wrap: func(j storage.Journal) storage.Journal {
		b.Journal = j
		return b
	}}), b
}

// Directory data that changes during a decision counts: a policy never answers for data that is
// gone when the intent is committed.
func TestPolicyDataChangesDuringADecision(t *testing.T) {
	w, b := interposed(t)
	task := started(w, catalog.Pure)
	b.lookup = func() { w.Data("python", "false") }
	w.Want(w.Do(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"})), intents.PolicyDenied)
	if n := len(w.Bus.Calls("exec_python")); n != 0 {
		t.Errorf("%d scripts ran", n)
	}
}

// Of two equal intents with an effect, signed under two keys and decided at once, one is executed.
func TestEqualOnceIntentsAtOnce(t *testing.T) {
	w, b := interposed(t)
	task := started(w, catalog.Once)
	first, second := task.CallIntent("feed", `{}`), task.CallIntent("feed", `{}`)
	first.Key, second.Key = "one", "two"
	b.commit = func() { w.OK(first) }
	w.Want(w.Do(second), intents.ConflictIdempotency)
	if n := len(w.Bus.Calls("skill.call")); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// While one of several equal intents is indeterminate, no other is accepted.
func TestRepeatWhileOneIsIndeterminate(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	call := func(occurrence int) *intents.Answer {
		o := task.CallIntent("feed", `{}`)
		o.Ctx.Occurrence = occurrence
		return w.Do(o)
	}
	w.Want(call(0), intents.OK)
	w.Bus.On("skill.call", routertest.Always(intents.Report{Status: intents.Done, Code: intents.OK, Result: json.RawMessage(`{"no":"result"}`)}))
	w.Want(call(1), intents.Indeterminate)
	w.Want(call(2), intents.ConflictIdempotency)
	w.Pin("feed", catalog.Idempotent) // the skill's later effect does not apply to that call
	w.Want(call(2), intents.ConflictIdempotency)
}

// A decision's view of the plan still holds when it is committed.
func TestPlanChangesDuringADecision(t *testing.T) {
	w, b := interposed(t)
	p := w.Begun("p1", "feed")
	b.commit = func() { w.Want(p.Cancel(w.Gateway), intents.OK) }
	a := w.OK(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}, Ctx: intents.Context{PlanID: routertest.PlanID("p1")}})
	var inputs struct {
		Plan struct {
			Status string `json:"status"`
		} `json:"plan"`
	}
	w.Must(json.Unmarshal(w.Records()[*a.Position].Parts[storage.PartInputs], &inputs))
	if inputs.Plan.Status != string(catalog.PlanFailed) {
		t.Errorf("the record says that the plan was %s", inputs.Plan.Status)
	}
}
