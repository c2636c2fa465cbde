package router_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// restored is a world with newer keys than its log: those of records are gone, and it has no
// record.erase.
func restored(w *routertest.World, positions ...int64) *routertest.World {
	w.Helper()
	w = w.Reopen() // the log that the keys were copied of is as it was
	eraser, can := w.Journal.(storage.Eraser)
	if !can {
		w.Fatal("no eraser")
	}
	w.Must(eraser.Erase(w.Context(), positions...))
	return w.Reopen()
}

// recoverBeside starts a router whose recovery goes on beside the test; stop ends that.
func recoverBeside(w *routertest.World) (stop func()) {
	w.Helper()
	w.Must(w.Router.Start(w.Context()))
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Router.Recover(ctx) }()
	return func() { cancel(); w.Must(<-ended) }
}

// TestUnexplained: a log that lacks erasures accepts nothing but administration. An intent that was
// open in it ends, one that is there still waits, and both go on once the last erasure is signed.
func TestUnexplained(t *testing.T) {
	for effect, want := range map[catalog.Effect]intents.Code{catalog.Pure: intents.Abandoned, catalog.Idempotent: intents.Indeterminate, catalog.Once: intents.Indeterminate} {
		t.Run(string(effect), func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			w.Pin("keep", catalog.Idempotent)
			w.Pin("feed", effect)
			task, other := w.Begun("p1", "feed").Started(1), w.Begun("p2", "keep").Started(1)
			w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"anas-reply"`)})))
			done := w.Want(task.Call("feed", `{"name":"ana"}`), intents.OK)
			w, gone := left(w, task.CallIntent("feed", `{"name":"bea"}`))
			w, stays := left(w, (&routertest.Task{Plan: other.On(w), TaskID: other.TaskID, Key: other.Key, Step: other.Step, Revision: other.Revision}).CallIntent("keep", `{"name":"cia"}`))
			w = restored(w, *done.Position, *done.Position+1, *gone.Position)
			w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
			calls := len(w.Bus.Calls("skill.call"))
			stop := recoverBeside(w)

			find := routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}}
			a := w.Want(w.Do(find), intents.Overloaded)
			if w.Router.Ready() || a.Position != nil || !strings.Contains(a.Reason, "2 intents have lost parts") || !strings.Contains(a.Hint, "audit fsck") || a.RetryAfter == 0 {
				t.Errorf("ready %v: %+v", w.Router.Ready(), a)
			}
			if b := w.Router.SubmitBatch(t.Context(), batchOf(w.Sign(find)), 0); b.Code != intents.Overloaded {
				t.Errorf("a batch: %+v", b)
			}
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.k", Value: []byte(`1`)}}), intents.OK)

			w.Want(erase(w, done, catalog.ErasesEnvelope, catalog.ErasesResult), intents.OK) // its plan is open
			if w.Want(w.Do(find), intents.Overloaded); w.Dir.IsUnexplained(*done.Position, catalog.ErasesEnvelope) {
				t.Error("it is signed, and not explained")
			}
			ended, err := w.Router.Await(t.Context(), *gone.Position)
			w.Must(err)
			if ended.Code != want {
				t.Errorf("the open intent ended: %+v", ended)
			}
			if got := len(w.Bus.Calls("skill.call")); got != calls {
				t.Errorf("%d calls before the erasures are signed", got-calls)
			}
			if want == intents.Indeterminate {
				w.Want(erase(w, gone, catalog.ErasesEnvelope), intents.MalformedArgs)
				w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: gone.IntentID, Status: "failed", Reason: "seen"}), intents.OK)
			}
			if a := w.Want(erase(w, gone, catalog.ErasesEnvelope, catalog.ErasesResult), intents.MalformedArgs); !strings.Contains(a.Reason, "plan has not ended") {
				t.Errorf("what is there still: %s", a.Reason)
			}
			w.Want(erase(w, gone, catalog.ErasesEnvelope), intents.OK)

			if !w.Router.Ready() {
				t.Error("all is signed, and it is not ready")
			}
			w.Want(w.Do(find), intents.OK)
			if again, err := w.Router.Await(t.Context(), *stays.Position); err != nil || again.Code != intents.OK {
				t.Errorf("the one that stayed: %+v %v", again, err)
			}
			stop()
			after := w.Restart()
			if !after.Router.Ready() {
				t.Error("not ready after a restart")
			}
			if _, all := after.Dir.Unexplained(1); all > 0 {
				t.Errorf("%d are unexplained after a restart", all)
			}
		})
	}
}

// TestUnexplainedApproved: an erasure that needs people is approved although nothing else is
// accepted.
func TestUnexplainedApproved(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "Two of us erase.", "approvers": ["ben"]} if input.intent.type == "record.erase"`)
	own := w.AddOperator("default", "olga", "admin")
	find := w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "anas-word"}})
	other := w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}})
	w = restored(w, *find.Position)
	stop := recoverBeside(w)
	defer stop()
	held := w.Want(w.Do(routertest.Intent{By: own, Type: "record.erase", Args: eraseArgs(find, catalog.ErasesEnvelope), Tenant: "default", User: "olga"}), intents.ApprovalRequired)
	no := releaseWorld{w, nil, other}
	w.Want(no.says("ben", catalog.DecisionApprove), intents.Overloaded)
	x := releaseWorld{w, nil, held}
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased || !w.Router.Ready() {
		t.Fatalf("%+v, ready %v", got, w.Router.Ready())
	}
}

// TestUnexplainedReleases: a held call whose time has come is not released before all is signed.
func TestUnexplainedReleases(t *testing.T) {
	x, first, _ := unsure(t, `{"once":false}`)
	x.Want(x.task.Finish("held", "", ""), intents.OK)
	x.resolve(first, "done")
	x = x.on(restored(x.World, *first.Position))
	stop := recoverBeside(x.World)
	defer stop()
	calls := len(x.Bus.Calls("skill.call"))
	x.Must(x.Router.ReleaseReady(t.Context()))
	if x.Router.Quiet(); len(x.Bus.Calls("skill.call")) != calls {
		t.Error("it was carried out")
	}
	x.Want(erase(x.World, first, catalog.ErasesEnvelope), intents.OK)
	x.Must(x.Router.ReleaseReady(t.Context()))
	x.Want(x.outcome(), intents.OK)
}

// TestUnexplainedInASnapshot: a state that continues from a snapshot knows of them.
func TestUnexplainedInASnapshot(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	find := w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}})
	w = restored(w, *find.Position)
	var stored bytes.Buffer
	_, err := w.Dir.Snapshot(&stored)
	w.Must(err)
	s, err := state.Open(&stored)
	w.Must(err)
	first, all := s.Unexplained(1)
	if all != 1 || first[0].Position != *find.Position || !slices.Equal(first[0].Parts, []string{catalog.ErasesEnvelope}) {
		t.Errorf("%+v %d", first, all)
	}
}
