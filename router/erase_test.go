package router_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// erase has the operator of system erase parts of an intent of default.
func erase(w *routertest.World, a *intents.Answer, parts ...string) *intents.Answer {
	w.Helper()
	return w.Admin("record.erase", eraseArgs(a, parts...))
}

func eraseArgs(a *intents.Answer, parts ...string) catalog.RecordErase {
	return catalog.RecordErase{Tenant: "default", IntentID: a.IntentID, Position: *a.Position, Parts: parts, Reason: "the person asked for it"}
}

// inRecords returns the records that have a text in a part.
func inRecords(w *routertest.World, text string) (found []int64) {
	w.Helper()
	for _, r := range w.Records() {
		for _, part := range r.Parts {
			if bytes.Contains(part, []byte(text)) {
				found = append(found, r.Position)
				break
			}
		}
	}
	return found
}

// TestErase: intent and result leave their records, the digests stay, answers about the intent have
// neither, and a restart applies the rest.
func TestErase(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"anas-reply"`)})))
	call := w.Want(task.Call("feed", `{"name":"anas-name"}`), intents.OK)
	if len(inRecords(w, "anas-name")) != 1 || len(inRecords(w, "anas-reply")) != 1 {
		t.Fatal("the test looks in the wrong place")
	}
	before := w.Records()
	if a := w.Want(erase(w, call, catalog.ErasesEnvelope), intents.MalformedArgs); !strings.Contains(a.Reason, "plan has not ended") {
		t.Errorf("%s", a.Reason)
	}
	task.Fail()
	w.Want(erase(w, call, catalog.ErasesResult), intents.OK)
	if where := inRecords(w, "anas-reply"); len(where) > 0 {
		t.Errorf("the result is still in %v", where)
	}
	if len(inRecords(w, "anas-name")) == 0 {
		t.Error("the envelope is gone, and nobody asked for that")
	}
	w.Want(erase(w, call, catalog.ErasesEnvelope, catalog.ErasesResult), intents.OK)
	w.Want(erase(w, call, catalog.ErasesEnvelope), intents.OK)
	if where := inRecords(w, "anas-name"); len(where) > 0 {
		t.Errorf("the intent is still in %v", where)
	}
	for i, was := range before {
		if is := w.Records()[i]; is.Digest() != was.Digest() {
			t.Errorf("record %d has another digest", i)
		}
	}
	check := func(w *routertest.World) {
		t.Helper()
		w.Must(w.Dir.Err())
		a, err := w.Router.Intent(t.Context(), *call.Position)
		w.Must(err)
		if a.Outcome.Result != nil || a.Reason != storage.ErasedReason || a.Receipt != call.Receipt || a.Code != intents.OK {
			t.Errorf("%+v %+v", a, a.Outcome)
		}
	}
	check(w)
	after := w.Restart()
	check(after)
	was, _ := w.Dir.View().Plan("default", routertest.PlanID("p1"))
	is, _ := after.Dir.View().Plan("default", routertest.PlanID("p1"))
	if d := cmp.Diff(was, is); d != "" || len(is.IntentHistory) != 1 || string(is.IntentHistory[0].Args) != `{}` {
		t.Errorf("the plan, -before +after a restart:\n%s%+v", d, is.IntentHistory)
	}
}

// TestEraseRefused: no control record, no intent on which others depend, none that has not ended or
// is another's, and no operator without the capability.
func TestEraseRefused(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	call := w.Want(task.Call("feed", `{}`), intents.OK)
	denied := w.Want(task.Call("other", `{}`), intents.TaskScope)
	task.Fail()
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	stranger := w.AddOperator("acme", "eve", "admin")
	clerk := w.AddOperator("default", "carl", "auditor")
	own := w.AddOperator("default", "dora", "admin")
	at := func(position int64) *intents.Answer {
		return &intents.Answer{IntentID: call.IntentID, Position: &position}
	}
	intent := catalog.ErasesEnvelope
	for name, c := range map[string]struct {
		args catalog.RecordErase
		code intents.Code
		by   *intents.Signer
		as   string
		of   string
	}{
		"genesis":                    {args: eraseArgs(at(0), intent), code: intents.MalformedArgs},
		"no record":                  {args: eraseArgs(at(1<<40), intent), code: intents.MalformedArgs},
		"outcome":                    {args: eraseArgs(at(*call.Position+1), intent), code: intents.MalformedArgs},
		"another intent's place":     {args: eraseArgs(at(*denied.Position), intent), code: intents.MalformedArgs},
		"intent of the router":       {args: eraseArgs(at(1), intent), code: intents.MalformedArgs},
		"result of a refused intent": {args: eraseArgs(denied, catalog.ErasesResult), code: intents.MalformedArgs},
		"no such part":               {args: eraseArgs(call, "decision"), code: intents.SchemaInvalid},
		"no part":                    {args: eraseArgs(call), code: intents.SchemaInvalid},
		"blobs that stay":            {args: eraseArgs(call, catalog.ErasesBlobs), code: intents.MalformedArgs},
		"not of system":              {args: catalog.RecordErase{IntentID: call.IntentID, Position: *call.Position, Parts: []string{intent}, Reason: "r"}, code: intents.MalformedArgs},
		"another tenant's":           {args: eraseArgs(call, intent), code: intents.RBACForbidden, by: &stranger, as: "eve", of: "acme"},
		"as one's own":               {args: catalog.RecordErase{IntentID: call.IntentID, Position: *call.Position, Parts: []string{intent}, Reason: "r"}, code: intents.MalformedArgs, by: &stranger, as: "eve", of: "acme"},
		"who may not":                {args: eraseArgs(call, intent), code: intents.RBACForbidden, by: &clerk, as: "carl", of: "default"},
		"no operator":                {args: eraseArgs(call, intent), code: intents.KeyRole, by: &w.Planner},
	} {
		o := routertest.Intent{By: w.Operator, Type: "record.erase", Args: c.args, Tenant: c.of, User: c.as}
		if c.by != nil {
			o.By = *c.by
		}
		if a := w.Do(o); a.Code != c.code {
			t.Errorf("%s: %s, want %s: %s %s", name, a.Code, c.code, a.Pointer, a.Reason)
		}
	}
	for _, r := range w.Records() {
		if len(r.Erased) > 0 {
			t.Errorf("record %d has lost %v", r.Position, r.Erased)
		}
	}
	// The refused intent itself, and by an operator of the tenant.
	w.Want(erase(w, denied, intent), intents.OK)
	w.Want(w.Do(routertest.Intent{By: own, Type: "record.erase", Args: eraseArgs(call, intent), Tenant: "default", User: "dora"}), intents.OK)
	for _, a := range []*intents.Answer{denied, call} {
		if r := w.Records()[*a.Position]; r.Parts[storage.PartEnvelope] != nil || r.Parts[storage.PartGrant] != nil {
			t.Errorf("record %d has its envelope still", r.Position)
		}
	}
	w.Restart()
}

// TestEraseHeld: a held intent and an intent that people have approved stay.
func TestEraseHeld(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	w.Want(erase(w, x.held, catalog.ErasesResult), intents.MalformedArgs)
	x.says("ben", catalog.DecisionReject)
	x.task.Fail()
	w.Want(erase(w, x.held, catalog.ErasesEnvelope), intents.MalformedArgs)
	w.Want(erase(w, x.held, catalog.ErasesResult), intents.OK)
}

// slowEraser is a journal whose next erasures fail.
type slowEraser struct {
	storage.Journal
	storage.Eraser
	left *int
}

func (f slowEraser) Erase(ctx context.Context, positions ...int64) error {
	if *f.left > 0 {
		*f.left--
		return errors.New("somebody reads")
	}
	return f.Eraser.Erase(ctx, positions...)
}

// TestEraseInBackground: an accepted erasure that could not be executed is not reported as done,
// and is completed when it is sent again, or by the next start.
func TestEraseInBackground(t *testing.T) {
	for _, how := range []string{"again", "start"} {
		fails := 1
		w := routertest.New(t, routertest.Options{Wrap: func(j storage.Journal) storage.Journal {
			eraser, ok := j.(storage.Eraser)
			if !ok {
				t.Fatal("no eraser")
			}
			return slowEraser{j, eraser, &fails}
		}})
		find := func(query string) *intents.Answer {
			return w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: query}})
		}
		first := find("first-word")
		if a := w.Want(erase(w, first, catalog.ErasesEnvelope), intents.InFlight); !strings.Contains(a.Hint, "send the same command again") {
			t.Errorf("the hint is %q", a.Hint)
		}
		if len(inRecords(w, "first-word")) == 0 {
			t.Fatal("the test fails nothing")
		}
		if how == "again" {
			w.Want(erase(w, first, catalog.ErasesEnvelope), intents.OK)
		} else {
			w = w.Restart()
		}
		if where := inRecords(w, "first-word"); len(where) > 0 {
			t.Errorf("%s: still in %v", how, where)
		}
	}
}

// TestEraseApproved: a held erasure erases nothing before it is approved, and everything then.
func TestEraseApproved(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "Two of us erase.", "approvers": ["ben"]} if input.intent.type == "record.erase"`)
	own := w.AddOperator("default", "olga", "admin")
	find := w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "anas-word"}})
	args := eraseArgs(find, catalog.ErasesEnvelope)
	held := w.Want(w.Do(routertest.Intent{By: own, Type: "record.erase", Args: args, Tenant: "default", User: "olga"}), intents.ApprovalRequired)
	if len(inRecords(w, "anas-word")) == 0 {
		t.Fatal("erased before anybody approved")
	}
	x := releaseWorld{w, nil, held}
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v", got)
	}
	if where := inRecords(w, "anas-word"); len(where) > 0 {
		t.Errorf("still in %v", where)
	}
	after := w.Restart()
	after.Must(after.Dir.Err())
}
