package recorder_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// indices that the recorder writes.
var indices = []string{storage.IndexMessages, storage.IndexPlans, storage.IndexEvents, storage.IndexSkillCalls, storage.IndexIntents}

// documents is an empty store that knows the schemas.
func documents(t testing.TB) *sqlite.Documents {
	t.Helper()
	return documentsIn(t, t.TempDir())
}

// documentsIn opens those of a directory.
func documentsIn(t testing.TB, dir string) *sqlite.Documents {
	t.Helper()
	d, err := sqlite.OpenDocuments(t.Context(), filepath.Join(dir, "documents.db"), func(index string, _ []byte, value any) (string, string, bool) {
		s, err := schemas.Storage(index)
		if err != nil {
			return "", "no such index", false
		}
		if v := s.Validate(value); len(v) > 0 {
			return v[0].Pointer, v[0].Reason, false
		}
		return "", "", true
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// follower is a running recorder.
type follower struct {
	*recorder.Recorder
	t     testing.TB
	world *routertest.World
	end   context.CancelFunc
	done  chan error
}

// follow runs a recorder over a world's records.
func follow(t testing.TB, w *routertest.World, d storage.Documents) *follower {
	t.Helper()
	f := &follower{Recorder: recorder.New(w.Journal, d, slog.New(slog.DiscardHandler)), t: t, world: w, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	f.end = cancel
	go func() { f.done <- f.Run(ctx) }()
	return f
}

// stop ends it, without an error.
func (f *follower) stop() {
	f.t.Helper()
	f.end()
	if err := <-f.done; err != nil {
		f.t.Fatal(err)
	}
}

// caughtUp waits until all that is durable now is projected.
func (f *follower) caughtUp() {
	f.t.Helper()
	reached := make(chan error, 1)
	go func() { reached <- f.Reach(f.t.Context(), f.world.Journal.Next()) }()
	select {
	case err := <-reached:
		if err != nil {
			f.t.Fatal(err)
		}
	case err := <-f.done:
		f.t.Fatalf("the recorder ended: %v", err)
	}
}

// woken is a world that wakes a recorder, and the recorder.
func woken(t *testing.T, d storage.Documents) (*routertest.World, *follower) {
	t.Helper()
	return wokenOn(t, d, routertest.Options{})
}

// wokenOn is woken with a world of its own.
func wokenOn(t *testing.T, d storage.Documents, o routertest.Options) (*routertest.World, *follower) {
	t.Helper()
	var r atomic.Pointer[follower]
	o.Also = func(storage.Entry) {
		if f := r.Load(); f != nil {
			f.Wake()
		}
	}
	w := routertest.New(t, o)
	f := follow(t, w, d)
	r.Store(f)
	return w, f
}

// dump returns everything that was projected.
func dump(t testing.TB, d storage.Documents, tenants ...string) map[string][]storage.Document {
	t.Helper()
	out := map[string][]storage.Document{}
	for _, tenant := range tenants {
		for _, index := range indices {
			q := storage.Query{Limit: 1000}
			for {
				page, err := d.Search(t.Context(), tenant, index, q)
				if err != nil {
					t.Fatal(err)
				}
				out[tenant+"/"+index] = append(out[tenant+"/"+index], page.Documents...)
				if q.After = page.Cursor; q.After == "" {
					break
				}
			}
		}
	}
	return out
}

// eventful produces events of each kind: a whole turn, a refusal, a hold, replans, a contract
// violation, control intents.
func eventful(w *routertest.World) {
	w.Helper()
	w.TwoSteps()
	w.Want(w.NewPlan("plan_1").Open(), intents.OK) // a duplicate
	w.Pin("pay", catalog.Once)
	p := w.Begun("p2", "pay")
	w.Want(p.Started(1).Call("other", `{}`), intents.TaskScope)
	w.Want(p.Claim(), intents.OK)
	task := p.Started(1)
	w.Want(task.Call("pay", `{}`), intents.OK)
	w.Want(task.Finish("failed", "", "skill_timeout"), intents.OK)
	w.Want(p.Plan(routertest.Steps(2, "pay")), intents.OK)
	write := w.Bus.Executor("write_memory")
	w.Bus.On("write_memory", routertest.Always(routertest.Failed(intents.ContractViolation)))
	w.Want(p.Started(2).Write("result"), intents.ContractViolation)
	w.Bus.On("write_memory", write)
	w.Want(p.Plan(routertest.Steps(3, "pay")), intents.OK)
	call := w.Bus.Executor("skill.call")
	w.Bus.On("skill.call", nil)
	w.Want(p.Started(3).Call("pay", `{"n":2}`), intents.DispatchUnavailable)
	w.Bus.On("skill.call", call)
	w.Want(p.Cancel(w.Gateway), intents.OK)
	w.Approval(`{"once":true}`, "zoe")
	w.Want(w.Begun("p3", "pay").Started(1).Call("pay", `{"n":3}`), intents.ApprovalRequired)
}

// A live projection equals the projection from the records afterwards: the documents may be dropped
// and rebuilt.
func TestRebuild(t *testing.T) {
	live := documents(t)
	w, f := woken(t, live)
	eventful(w)
	f.caughtUp()
	f.stop()
	again := documents(t)
	g := follow(t, w, again)
	g.caughtUp()
	g.stop()
	want := dump(t, live, "default", "system")
	if d := cmp.Diff(want, dump(t, again, "default", "system")); d != "" {
		t.Error(d)
	}
	if len(want["default/agent_plans"]) != 3 || len(want["default/agent_skill_calls"]) != 4 || len(want["default/agent_events"]) < 50 || len(want["system/agent_intents"]) < 4 {
		t.Errorf("plans %d, events %d, intents %d", len(want["default/agent_plans"]), len(want["default/agent_events"]), len(want["system/agent_intents"]))
	}
}

// The document of a plan is the plan in the state.
func TestPlanDocument(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	eventful(w)
	f.caughtUp()
	f.stop()
	for _, name := range []string{"plan_1", "p2", "p3"} {
		id := routertest.PlanID(name)
		doc, err := d.Get(t.Context(), "default", storage.IndexPlans, id)
		w.Must(err)
		var got catalog.PlanView
		w.Must(json.Unmarshal(doc.Body, &got))
		if diff := cmp.Diff(w.NewPlan(name).View(), got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}

// A recorder that is stopped and started again at every turn writes every event once and ends where
// one that never stopped does.
func TestRestarts(t *testing.T) {
	c := &counting{Documents: documents(t)}
	w := routertest.New(t, routertest.Options{})
	for _, part := range []func(){func() { w.TwoSteps() }, func() { w.Begun("p5", "rank").Started(1) }, func() { w.Data("x.x", "1") }, func() {}} {
		part()
		f := follow(t, w, c)
		f.caughtUp()
		f.stop()
	}
	straight := documents(t)
	f := follow(t, w, straight)
	f.caughtUp()
	f.stop()
	want := dump(t, straight, "default", "system")
	if d := cmp.Diff(want, dump(t, c, "default", "system")); d != "" {
		t.Error(d)
	}
	if n := len(want["default/agent_events"]) + len(want["system/agent_events"]) + len(want["default/agent_skill_calls"]); c.created != n {
		t.Errorf("%d events and calls created, %d are there", c.created, n)
	}
}

// A crash between two documents of one record leaves the rest to the next start.
func TestCrashWithinARecord(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.TwoSteps()
	want := documents(t)
	f := follow(t, w, want)
	f.caughtUp()
	f.stop()
	c := &counting{Documents: documents(t), failed: make(chan struct{}, 1)}
	for n := 0; n < 60; n += 7 { // the store takes n writes, then the process ends
		limited := &limited{Documents: c, left: n, out: make(chan struct{})}
		f := follow(t, w, limited)
		all := make(chan error, 1)
		go func() { all <- f.Reach(t.Context(), w.Journal.Next()) }()
		select {
		case <-limited.out:
		case err := <-all: // nothing is left to write
			w.Must(err)
		}
		f.stop()
	}
	f = follow(t, w, c)
	f.caughtUp()
	f.stop()
	if d := cmp.Diff(dump(t, want, "default", "system"), dump(t, c, "default", "system")); d != "" {
		t.Error(d)
	}
}

var errDown = errors.New("the store is down")

func (c *counting) Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	if err := c.broken(); err != nil {
		return storage.Page{}, err
	}
	return c.Documents.Search(ctx, tenant, index, q)
}

// The recorder also waits for a store that is down at the start.
func TestStoreDownAtTheStart(t *testing.T) {
	c := &counting{Documents: documents(t), fail: errDown, failed: make(chan struct{}, 1)}
	w := routertest.New(t, routertest.Options{})
	w.TwoSteps()
	f := follow(t, w, c)
	<-c.failed
	c.set(nil)
	f.caughtUp()
	f.stop()
	c.set(errDown)
	g := follow(t, w, c) // it ends without an error while it waits
	<-c.failed
	g.stop()
}

// A store that is down stops no intent; when it is back nothing is missing.
func TestStoreDown(t *testing.T) {
	c := &counting{Documents: documents(t), failed: make(chan struct{}, 1)}
	w, f := woken(t, c)
	c.set(errDown)
	p := w.TwoSteps()
	<-c.failed
	if s, _ := p.Status(); s != catalog.PlanComplete {
		t.Errorf("plan %s", s)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Reach(gone, w.Journal.Next()); err == nil {
		t.Error("reached without a store")
	}
	c.set(nil)
	f.caughtUp()
	f.stop()
	if got := dump(t, c, "default"); len(got["default/agent_plans"]) != 1 {
		t.Errorf("%d plans", len(got["default/agent_plans"]))
	}
}
