package router_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// anas are the texts beside a request of ana's.
var anas = catalog.Transient{AddedInstruction: "anas-instruction", UserEmail: "ana@anas-word.example", UserName: "anas-name"}

// inPlain returns where a text of anas is: the positions of records, or -1 for the state as a snapshot
// has it.
func inPlain(w *routertest.World) (found []int64) {
	w.Helper()
	var snapshot bytes.Buffer
	_, err := w.Dir.Snapshot(&snapshot)
	w.Must(err)
	for _, word := range []string{anas.AddedInstruction, anas.UserEmail, anas.UserName} {
		found = append(found, inRecords(w, word)...)
		if bytes.Contains(snapshot.Bytes(), []byte(word)) {
			found = append(found, -1)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestTransient: the texts beside plan.open are in one part of its record, and in nothing else that
// is durable. Each driver of the open plan gets them, also after a restart. Once the plan has ended
// the part is gone, and nothing else is.
func TestTransient(t *testing.T) {
	for how, end := range map[string]func(p *routertest.Plan) *intents.Answer{
		"closed":    (*routertest.Plan).Fail,
		"cancelled": func(p *routertest.Plan) *intents.Answer { return p.Do(p.CancelIntent(p.Manager)) },
		"disabled": func(p *routertest.Plan) *intents.Answer {
			return p.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}})
		},
	} {
		t.Run(how, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			p := w.NewPlan("p1")
			opened := w.Want(w.Do(p.OpenIntentWith(anas)), intents.OK)
			for range 2 {
				claimed := p.Want(p.Claim(), intents.OK)
				if got := routertest.DetailsOf(p.World, claimed).Transient; got == nil || *got != anas {
					t.Fatalf("the driver gets %+v", got)
				}
				p = p.On(p.Restart())
			}
			if where := inPlain(p.World); !slices.Equal(where, []int64{*opened.Position}) {
				t.Errorf("while it is open the texts are in %v", where)
			}
			before := p.Records()
			p.Want(end(p), intents.OK)
			if where := inPlain(p.World); len(where) > 0 || len(p.Dir.EndedTransient()) > 0 {
				t.Errorf("after its end the texts are in %v, to be erased in %v", where, p.Dir.EndedTransient())
			}
			for i, was := range before {
				want := was
				if was.Position == *opened.Position {
					want, _ = was.Without(storage.PartTransient)
				}
				if d := cmp.Diff(want, p.Records()[i]); d != "" {
					t.Errorf("record %d: %s", i, d)
				}
			}
			p.Restart()
		})
	}
}

// TestTransientRefused: texts and signed digests belong together, else nothing is recorded. What
// policy refuses is recorded without the texts.
func TestTransientRefused(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.NewPlan("p1")
	good := p.OpenIntentWith(anas)
	texts := func(change func(intents.Transient)) routertest.Intent {
		o := good
		o.Beside = intents.Transient{}
		for name, text := range good.Beside {
			o.Beside[name] = text
		}
		change(o.Beside)
		return o
	}
	other := p.ClaimIntent(1)
	other.Beside = good.Beside
	long := good
	long.Beside = catalog.Transient{UserName: string(bytes.Repeat([]byte("x"), 257))}.Salted()
	before := len(w.Records())
	for name, c := range map[string]struct {
		intent  routertest.Intent
		code    intents.Code
		pointer string
	}{
		"another text": {texts(func(t intents.Transient) {
			t["user_email"] = intents.TransientText{Salt: t["user_email"].Salt, Text: "eve@example.com"}
		}), intents.SignatureInvalid, "/transient/user_email"},
		"another salt": {texts(func(t intents.Transient) { t["user_email"] = intents.NewTransientText(anas.UserEmail) }), intents.SignatureInvalid, "/transient/user_email"},
		"a text less":  {texts(func(t intents.Transient) { delete(t, "user_email") }), intents.SchemaInvalid, "/transient/user_email"},
		"no text":      {texts(func(t intents.Transient) { clear(t) }), intents.SchemaInvalid, "/transient/added_instruction"},
		"no digest":    {routertest.Intent{By: w.Gateway, Type: "plan.open", Args: catalog.PlanOpen{PlanID: p.ID, Task: "x"}, Beside: good.Beside}, intents.SchemaInvalid, "/transient/added_instruction"},
		"another type": {other, intents.SchemaInvalid, "/transient/added_instruction"},
		"another name": {texts(func(t intents.Transient) { t["colour"] = t["user_name"] }), intents.SchemaInvalid, "/transient/colour"},
		"a long text":  {long, intents.SchemaInvalid, "/transient/user_name/text"},
		"a short salt": {texts(func(t intents.Transient) {
			t["user_name"] = intents.TransientText{Salt: []byte("salt"), Text: anas.UserName}
		}), intents.SchemaInvalid, "/transient/user_name/salt"},
	} {
		if a := w.Do(c.intent); a.Code != c.code || a.Pointer != c.pointer {
			t.Errorf("%s: %s at %s: %s", name, a.Code, a.Pointer, a.Reason)
		}
	}
	if n := len(w.Records()); n != before {
		t.Errorf("%d records were written", n-before)
	}
	refused := good
	refused.Roles = []string{"nobody"}
	w.Want(w.Do(refused), intents.RBACForbidden)
	if where := inPlain(w); len(where) > 0 || len(w.Records()) == before {
		t.Errorf("the refusal is not recorded, or the texts are in %v", where)
	}
	w.Want(w.Do(good), intents.OK)
	if a := w.Want(w.Do(good), intents.OK); !a.Duplicate {
		t.Errorf("sent again: %+v", a)
	}
}

// TestTransientHeld: a plan.open that waits for people keeps its texts, and loses them when it is
// rejected, expires, or its plan has ended.
func TestTransientHeld(t *testing.T) {
	for _, how := range []string{"approve", "reject", "expire"} {
		t.Run(how, func(t *testing.T) {
			w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "plan.open"`)
			p := w.NewPlan("p1")
			held := w.Want(w.Do(p.OpenIntentWith(anas)), intents.ApprovalRequired)
			p = p.On(w.Restart())
			x := releaseWorld{p.World, nil, held}
			if where := inPlain(p.World); !slices.Equal(where, []int64{*held.Position}) {
				t.Errorf("while it waits the texts are in %v", where)
			}
			switch how {
			case "approve":
				p.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
				if got := routertest.DetailsOf(p.World, p.Want(p.Claim(), intents.OK)).Transient; got == nil || *got != anas {
					t.Fatalf("the driver gets %+v", got)
				}
				p.Want(p.Fail(), intents.OK)
			case "reject":
				p.Want(x.says("ben", catalog.DecisionReject), intents.OK)
			case "expire":
				p.Clock.Move(25 * time.Hour)
				p.Must(p.Router.ExpireHolds(t.Context()))
				p = p.On(p.Restart()) // a running router erases within a second
			}
			if where := inPlain(p.World); len(where) > 0 {
				t.Errorf("the texts are still in %v", where)
			}
			if _, there := p.Records()[*held.Position].Parts[storage.PartEnvelope]; !there {
				t.Error("the envelope is gone")
			}
		})
	}
}

// brokenKeys is a journal that cannot destroy keys for now.
type brokenKeys struct {
	storage.Journal
	storage.Eraser
}

func (brokenKeys) EraseTransient(context.Context, ...int64) error {
	return errors.New("the disk fails")
}

// TestTransientInBackground: a plan ends although its texts cannot be erased now; the next start does
// it. The driver of an open plan whose texts are lost is told so.
func TestTransientInBackground(t *testing.T) {
	w := routertest.New(t, routertest.Options{Wrap: func(j storage.Journal) storage.Journal { return brokenKeys{j, j.(storage.Eraser)} }})
	p := w.NewPlan("p1")
	opened := w.Want(w.Do(p.OpenIntentWith(anas)), intents.OK)
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Fail(), intents.OK)
	if where := inPlain(w); !slices.Equal(where, []int64{*opened.Position}) {
		t.Fatalf("the test fails nothing: %v", where)
	}
	w = w.Restart()
	if where := inPlain(w); len(where) > 0 {
		t.Errorf("the texts are still in %v", where)
	}
	p = w.NewPlan("p2")
	opened = w.Want(w.Do(p.OpenIntentWith(anas)), intents.OK)
	w.Must(w.Journal.(storage.Eraser).EraseTransient(t.Context(), *opened.Position))
	if got := routertest.DetailsOf(w, w.Want(p.Claim(), intents.OK)); !got.TransientLost || got.Transient != nil {
		t.Errorf("the driver gets %+v", got)
	}
	w.Want(p.Do(p.CancelIntent(p.Manager)), intents.OK)
}
