package router_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// Each stage comes before the next one: every intent here is wrong in two neighbouring stages.
func TestStageOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*routertest.World, *routertest.Intent)
		code   intents.Code
	}{
		{"signature before type", func(w *routertest.World, o *routertest.Intent) {
			o.By, o.Type = w.NewKey(intents.RolePlanner), "skill.fly"
		}, intents.KeyUnknown},
		{"signature before freshness", func(w *routertest.World, o *routertest.Intent) {
			o.By, o.At = w.NewKey(intents.RolePlanner), w.Clock.Now().Add(-time.Hour)
		}, intents.KeyUnknown},
		{"grant before arguments", func(_ *routertest.World, o *routertest.Intent) { o.NoGrant, o.Args = true, struct{}{} }, intents.GrantInvalid},
		{"arguments before freshness", func(w *routertest.World, o *routertest.Intent) {
			o.Args, o.At = struct{}{}, w.Clock.Now().Add(-time.Hour)
		}, intents.SchemaInvalid},
		{"freshness before idempotency", func(w *routertest.World, o *routertest.Intent) {
			o.Args, o.At = catalog.SkillFind{Query: "other"}, w.Clock.Now().Add(-time.Hour)
		}, intents.ExpiredTTL},
		{"idempotency before capability", func(_ *routertest.World, o *routertest.Intent) {
			o.Args, o.Roles = catalog.SkillFind{Query: "other"}, []string{"auditor"}
		}, intents.ConflictIdempotency},
		{"capability before policy", func(_ *routertest.World, o *routertest.Intent) {
			o.Key, o.Roles, o.Ctx.Labels = "k2", []string{"auditor"}, map[string]string{"writ.selfproof": "forbidden"}
		}, intents.RBACForbidden},
		{"policy before dispatch", func(_ *routertest.World, o *routertest.Intent) {
			o.Key, o.Ctx.Labels = "k3", map[string]string{"writ.selfproof": "forbidden"}
		}, intents.PolicyDenied},
	} {
		w := routertest.New(t, routertest.Options{})
		o := find(w)
		o.Key = "k"
		w.OK(o) // it takes the key
		c.change(w, &o)
		w.Bus.On("skill.find", nil)
		if a := w.Do(o); a.Code != c.code {
			t.Errorf("%s: %s, want %s", c.name, a.Code, c.code)
		}
		if n := len(w.Bus.Calls("skill.find")); n != 1 {
			t.Errorf("%s: %d dispatches", c.name, n)
		}
	}
}

// A plan exists from its receipt on, with its bounds; its steps are opened in order, and failures
// have their time.
func TestPlanFromReceiptOn(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	if v := p.View(); v.Status != catalog.PlanPending || v.MaxSteps != 10 || v.ReplanCount != 0 || len(v.Steps) != 0 || !v.CreatedAt.Equal(w.Clock.Now()) {
		t.Errorf("on receipt: %+v", v)
	}
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Plan(routertest.Steps(1, "a", "b")), intents.OK)
	if a := w.Want(w.Do(p.StepIntent(p.NewTask(2).StepArgs())), intents.MalformedArgs); a.Pointer != "/intent/args/step" {
		t.Errorf("step 2 before step 1: %s", a.Pointer)
	}
	first := p.Started(1)
	if a := w.Want(w.Do(p.StepIntent(p.NewTask(2).StepArgs())), intents.MalformedArgs); a.Pointer != "/intent/args/step" {
		t.Errorf("step 2 beside step 1: %s", a.Pointer)
	}
	first.Done()
	w.Clock.Move(time.Second)
	w.Want(p.Started(2).Finish("failed", "", "no rows"), intents.OK)
	h := p.View().History
	if len(h) != 1 || h[0].Attempt != 1 || h[0].FailedStep != 2 || h[0].Reason != "no rows" || !h[0].RevisedAt.Equal(w.Clock.Now()) {
		t.Errorf("%+v", h)
	}
}

// The files of a step are removed with its task's own end, whatever that is; those of another step
// stay.
func TestStepFilesAreWiped(t *testing.T) {
	w, blobs, task := withBlobs(t)
	scope := storage.Scope{Tenant: "default", Plan: routertest.PlanID("p1"), Revision: 1, Step: 1}
	other := scope
	other.Step = 2
	here := func(s storage.Scope, id string) bool {
		r, _, err := blobs.Open(t.Context(), s, id)
		if err == nil {
			w.Must(r.Close())
		} else if !errors.Is(err, storage.ErrNotFound) {
			t.Error(err)
		}
		return err == nil
	}
	mine, err := blobs.Put(t.Context(), scope, strings.NewReader("mine"))
	w.Must(err)
	theirs, err := blobs.Put(t.Context(), other, strings.NewReader("theirs"))
	w.Must(err)
	w.Want(task.Call("feed", `{}`), intents.OK)
	if !here(scope, mine.ID) {
		t.Fatal("gone while the task works")
	}
	w.Want(task.Finish("insufficient", "", "no rows"), intents.OK)
	if here(scope, mine.ID) || !here(other, theirs.ID) {
		t.Errorf("after the end: its own file %v, another step's %v", here(scope, mine.ID), here(other, theirs.ID))
	}
}

// A task names a label, never a key.
func TestMemoryLabelIsNoKey(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	for _, args := range []any{
		catalog.WriteMemory{Label: "default:S:task_9:result", Data: json.RawMessage(`[1]`)},
		catalog.WriteMemory{Label: "../x", Data: json.RawMessage(`[1]`)},
		map[string]any{"label": "x", "data": 1, "key": "default:S:task_9:result"},
	} {
		w.Want(w.Do(task.Intent("write_memory", args)), intents.SchemaInvalid)
	}
	if n := len(w.Bus.Calls("write_memory")); n != 0 {
		t.Errorf("%d writes", n)
	}
}
