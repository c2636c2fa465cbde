package router_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// ends are the ways in which a plan ends.
var ends = []string{"complete", "failed", "cancel"}

// TestErasePlan: a person's request, the steps' results and the answer leave the records of a plan
// that has ended. The digests stay, and the state is the one that is built from the rest.
func TestErasePlan(t *testing.T) {
	for _, how := range ends {
		t.Run(how, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			other, endOther := w.Tell("p0", "bens-word", "complete")
			endOther()
			plan, end := w.Tell("p1", "anas-word", how)
			for _, a := range plan.Intents {
				if got := w.Want(w.Erase(a, catalog.ErasesEnvelope), intents.MalformedArgs); !strings.Contains(got.Reason, "plan has not ended") {
					t.Fatalf("%s", got.Reason)
				}
			}
			end()
			if len(inRecords(w, "anas-word")) < len(plan.Intents) {
				t.Fatal("the test looks in the wrong place")
			}
			before := w.Records()
			plan.Erase()
			if where := inRecords(w, "anas-word"); len(where) > 0 {
				t.Errorf("still in %v", where)
			}
			if len(inRecords(w, "bens-word")) < len(other.Intents) {
				t.Error("another plan has lost its texts")
			}
			for i, was := range before {
				if is := w.Records()[i]; is.Digest() != was.Digest() {
					t.Errorf("record %d has another digest", i)
				}
			}
			view := plan.View()
			if view.Task != storage.ErasedReason || view.Steps[0].Task != storage.ErasedReason {
				t.Errorf("%+v", view)
			}
			checkRebuilt(w)
			after := w.Restart()
			if d := cmp.Diff(view, plan.On(after).View()); d != "" {
				t.Errorf("the plan, -before +after a restart:\n%s", d)
			}
			for _, a := range plan.Intents {
				got, err := after.Router.Intent(t.Context(), *a.Position)
				after.Must(err)
				if got.Outcome.Result != nil || got.Reason != storage.ErasedReason || got.Receipt != a.Receipt || got.Code != intents.OK {
					t.Errorf("%+v %+v", got, got.Outcome)
				}
			}
		})
	}
}

// checkRebuilt compares the live state with one rebuilt from the records that are left.
func checkRebuilt(w *routertest.World) {
	w.Helper()
	_, live, err := w.Dir.Digest()
	w.Must(err)
	_, anew, err := rebuild(w).Digest()
	w.Must(err)
	if live != anew {
		w.Error("folded anew it is another state")
	}
}

// TestEraseOnePlanIntent: the state drops all texts of a plan with the first erased intent,
// whichever it is, as a state rebuilt without the erased bytes does.
func TestEraseOnePlanIntent(t *testing.T) {
	for i := range 7 {
		w := routertest.New(t, routertest.Options{})
		plan, end := w.Tell("p1", "anas-word", ends[i%len(ends)])
		end()
		w.Want(w.Erase(plan.Intents[min(i, len(plan.Intents)-1)], catalog.ErasesEnvelope), intents.OK)
		checkRebuilt(w)
	}
}

// TestErasedIsForgottenByStates: a state that drops texts, built while the texts existed, equals
// one that is built after they have gone, also for a plan that was removed from it.
func TestErasedIsForgottenByStates(t *testing.T) {
	live := state.New()
	w := routertest.New(t, routertest.Options{Also: live.Observe})
	gone, end := w.Tell("p1", "anas-word", "failed")
	end()
	w.Clock.Move(state.PlanKept)
	plan, end := w.Tell("p2", "anas-word", "failed")
	end()
	gone.Erase()
	plan.Erase()
	_, was, err := live.Digest()
	w.Must(err)
	anew := state.New()
	for _, r := range w.Records() {
		anew.Observe(state.EntryOf(r))
	}
	if _, is, err := anew.Digest(); err != nil || is != was {
		t.Errorf("another state, %v", err)
	}
	var raw bytes.Buffer
	_, err = live.Snapshot(&raw)
	w.Must(err)
	if bytes.Contains(raw.Bytes(), []byte("anas-word")) {
		t.Error("the state has a text that was erased")
	}
}

// TestErasePlanRefused: intents that bring keys into force stay, and so do those that people were
// asked to approve, and those from before intents of plans had a summary.
func TestErasePlanRefused(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if {
	input.intent.type == "plan.open"
	input.context.labels.careful == "yes"
}`)
	plan, end := w.Tell("p1", "anas-word", "failed")
	end()
	for _, a := range plan.Others {
		if got := w.Want(w.Erase(a, catalog.ErasesEnvelope), intents.MalformedArgs); !strings.Contains(got.Reason, "later records rest on this intent") {
			t.Errorf("%s", got.Reason)
		}
	}
	w.Want(w.Erase(plan.Intents[0], catalog.ErasesBlobs), intents.MalformedArgs)
	user := w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "dora", Roles: []string{"user"}}}), intents.OK)
	w.Want(w.Erase(user, catalog.ErasesEnvelope), intents.MalformedArgs)
	open := w.NewPlan("p2").OpenIntent()
	open.Ctx.Labels = map[string]string{"careful": "yes"}
	x := releaseWorld{w, nil, w.Want(w.Do(open), intents.ApprovalRequired)}
	x.says("ben", catalog.DecisionApprove)
	w.Want(w.NewPlan("p2").Cancel(w.Gateway), intents.OK)
	if got := w.Want(w.Erase(x.held, catalog.ErasesEnvelope), intents.MalformedArgs); !strings.Contains(got.Reason, "people were asked") {
		t.Errorf("%s", got.Reason)
	}
	w.Want(w.Erase(x.held, catalog.ErasesResult), intents.OK)
}

// halfEraser is a journal that dies in the middle of an erasure: the first part is erased, and the
// rest is not.
type halfEraser struct {
	storage.Journal
	storage.Eraser
	left *int
}

func (f halfEraser) Erase(ctx context.Context, positions ...int64) error {
	if *f.left == 0 {
		return f.Eraser.Erase(ctx, positions...)
	}
	*f.left--
	return errors.Join(f.Eraser.Erase(ctx, positions[:1]...), errors.New("it dies"))
}

// TestErasePlanCrash: the next start completes an interrupted erasure.
func TestErasePlanCrash(t *testing.T) {
	fails := 2
	w := routertest.New(t, routertest.Options{Wrap: func(j storage.Journal) storage.Journal {
		eraser, ok := j.(storage.Eraser)
		if !ok {
			t.Fatal("no eraser")
		}
		return halfEraser{j, eraser, &fails}
	}})
	plan, end := w.Tell("p1", "anas-word", "complete")
	end()
	open, closed := plan.Intents[0], plan.Intents[len(plan.Intents)-1]
	for _, a := range []*intents.Answer{open, closed} {
		w.Want(w.Erase(a, catalog.ErasesEnvelope, catalog.ErasesResult), intents.InFlight)
	}
	if len(inRecords(w, "anas-word answer")) > 0 || len(inRecords(w, "anas-word step")) == 0 {
		t.Fatal("the test cuts nothing off in the middle")
	}
	w = w.Restart()
	for _, a := range []*intents.Answer{open, closed} {
		for i := range int64(2) {
			if r := w.Records()[*a.Position+i]; len(r.Erased) == 0 {
				t.Errorf("record %d is whole", r.Position)
			}
		}
	}
	checkRebuilt(w)
}

// TestErasePlanBytes: no file of the journal has a text of a plan in the clear, and an erasure
// leaves none of the keys that were used for it.
func TestErasePlanBytes(t *testing.T) {
	dir := t.TempDir()
	w := routertest.New(t, routertest.Options{Open: func(observe storage.Observer) routertest.Journal {
		j, err := sqlite.OpenJournal(t.Context(), dir, sqlite.JournalOptions{Observer: observe, FreeFloor: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}})
	plan, end := w.Tell("p1", "anas-word", "complete")
	end()
	inFiles := func() (found int) {
		files, err := os.ReadDir(dir)
		w.Must(err)
		for _, file := range files {
			raw, err := os.ReadFile(filepath.Join(dir, file.Name()))
			w.Must(err)
			found += bytes.Count(raw, []byte("anas-word"))
		}
		return found
	}
	zeros := func() int {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(dir), sqlite.KeysName, "0000000001"))
		w.Must(err)
		return bytes.Count(raw, make([]byte, 32))
	}
	if n := inFiles(); n > 0 || len(inRecords(w, "anas-word")) == 0 || zeros() > 0 {
		t.Fatalf("the files of the journal have a text %d times, and %d keys of zeros", n, zeros())
	}
	plan.Erase()
	if where := inRecords(w, "anas-word"); len(where) > 0 || zeros() < len(plan.Intents) {
		t.Errorf("still in %v, with %d keys of zeros", where, zeros())
	}
}
