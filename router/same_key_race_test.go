package router_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// onDisk opens the journal that `writ up` has.
func onDisk(t *testing.T, dir string, floor int64) func(storage.Observer) routertest.Journal {
	t.Helper()
	return func(observe storage.Observer) routertest.Journal {
		j, err := sqlite.OpenJournal(t.Context(), dir, sqlite.JournalOptions{Observer: observe, FreeFloor: floor})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		return j
	}
}

// submissions of one key at once.
const submissions = 1000

// A thousand submissions of one key at once, in the same bytes and with new signatures: one effect, one
// pair of records, and the same receipt for each.
func TestOneKeyManySubmissions(t *testing.T) {
	for _, typ := range []string{"dispatched", "by the router"} {
		t.Run(typ, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{Open: onDisk(t, t.TempDir(), -1), Slots: 2 * submissions, ChildSlots: 2 * submissions, Waits: 2 * submissions})
			task := started(w, catalog.Once)
			intent := task.CallIntent("feed", `{}`)
			if typ == "by the router" {
				intent = task.ClaimIntent(2)
			}
			oneEffect(w, intent)
		})
	}
}

func oneEffect(w *routertest.World, intent routertest.Intent) {
	w.Helper()
	var raws [][]byte
	for range 10 {
		raws = append(raws, w.Sign(intent))
	}
	before, effects := w.Journal.Next(), len(w.Bus.Calls("skill.call"))
	answers := make([]*intents.Answer, submissions)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-begin
			a, err := w.Router.SubmitAndWait(w.Context(), raws[i%len(raws)], time.Minute)
			if err != nil {
				w.Error(err)
				return
			}
			answers[i] = a
		})
	}
	close(begin)
	all.Wait()
	fresh := 0
	for _, a := range answers {
		if a == nil || a.Code != intents.OK || a.IntentID != answers[0].IntentID || a.Receipt != answers[0].Receipt || a.Receipt == "" || string(a.Outcome.Result) != string(answers[0].Outcome.Result) {
			w.Fatalf("%+v", a)
		}
		if !a.Replayed {
			fresh++
		}
	}
	if made := w.Journal.Next() - before; fresh != 1 || made != 2 {
		w.Errorf("%d fresh answers, %d records", fresh, made)
	}
	want := 1
	if intent.Type != "skill.call" {
		want = 0
	}
	if n := len(w.Bus.Calls("skill.call")) - effects; n != want {
		w.Errorf("%d effects", n)
	}
}

// A caller that waits for another's intent takes one of a bounded number of places. Without a free
// place the caller gets IN_FLIGHT at once, and occupies nothing.
func TestWaitsAreBounded(t *testing.T) {
	w := routertest.New(t, routertest.Options{Waits: 2})
	task := started(w, catalog.Once)
	g := newGate()
	w.Bus.On("skill.call", g.executor(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	raw := w.Sign(task.CallIntent("feed", `{}`))
	answers := make(chan *intents.Answer, 101)
	submit := func() {
		a, err := w.Router.SubmitAndWait(context.WithoutCancel(t.Context()), raw, time.Hour)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}
	go submit()
	<-g.began
	for range 100 {
		go submit()
	}
	for range 98 { // neither the first nor the two that wait
		if a := <-answers; a.Code != intents.InFlight || a.IntentID == "" {
			t.Fatalf("%+v", a)
		}
	}
	if b := w.Router.SubmitBatch(t.Context(), batchOf(raw), time.Hour); b.Code != intents.InFlight {
		t.Errorf("%+v", b)
	}
	close(g.answer)
	for range 3 {
		if a := <-answers; a.Code != intents.OK {
			t.Errorf("%+v", a)
		}
	}
}

// TestWaitsHaveShares: if one tenant's callers have taken all places to wait that they may, another
// tenant's still find some.
func TestWaitsHaveShares(t *testing.T) {
	const waits = 16
	w := routertest.New(t, routertest.Options{Waits: waits})
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	g := newGate()
	w.Bus.On("soul.get", g.executor(routertest.Done(catalog.Soul{})))
	answers := make(chan *intents.Answer, 100)
	// begin starts an intent; it can be submitted again.
	begin := func(tenant string) (submit func()) {
		raw := w.Sign(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}, Tenant: tenant, Key: catalog.RandomKey()})
		submit = func() {
			a, err := w.Router.SubmitAndWait(context.WithoutCancel(t.Context()), raw, time.Hour)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}
		go submit()
		<-g.began
		return submit
	}
	flood, other := begin("default"), begin("acme")
	for range 2 * waits {
		go flood()
	}
	for range 2*waits - 13 { // seven eighths of seven eighths wait
		if a := <-answers; a.Code != intents.InFlight {
			t.Fatalf("%+v", a)
		}
	}
	before := w.Router.Load().Callers
	go other()
	for w.Router.Load().Callers <= before && len(answers) == 0 { // until it waits, or has IN_FLIGHT
		runtime.Gosched()
	}
	if got := w.Router.Load().Callers; got != before+1 || got > waits {
		t.Errorf("%d wait, %d of one tenant", got, before)
	}
	close(g.answer)
}

// A user who has lost the capability since gets a refusal, and nothing of the first answer.
func TestDuplicateWithoutCapability(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Key = "k"
	w.OK(o)
	before := w.Journal.Next()
	o.Roles = []string{"auditor"}
	a := w.Want(w.Do(o), intents.RBACForbidden)
	if a.Receipt != "" || a.Outcome != nil || a.Replayed || a.Position != nil || w.Journal.Next() != before {
		t.Errorf("%+v", a)
	}
	o.Roles = nil
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*"}}}), intents.OK)
	w.Want(w.Do(o), intents.RBACForbidden)
}

// Below the floor of free disk no new intent is accepted, while accepted ones still get their
// outcome.
func TestFreeFloor(t *testing.T) {
	dir := t.TempDir()
	w := routertest.New(t, routertest.Options{Open: onDisk(t, dir, -1)})
	task := started(w, catalog.Idempotent)
	died, began := make(chan struct{}), make(chan struct{})
	w.Bus.On("skill.call", dies(began, died))
	raw := w.Sign(task.CallIntent("feed", `{}`))
	go w.SendContext(context.WithoutCancel(t.Context()), raw)
	<-began
	at := w.Journal.Next() - 1
	w.Must(w.Journal.(interface{ Close() error }).Close())
	close(died)

	next := w.ReopenOn(onDisk(t, dir, 1<<62))
	next.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	next.Start()
	if out := outcome(next, at); out.Code != intents.OK || out.Attempt != 2 {
		t.Errorf("the open intent ended %+v", out)
	}
	before := next.Journal.Next()
	if a := next.Want(next.Do(find(next)), intents.Overloaded); a.Position != nil || !a.Code.Info().Retryable {
		t.Errorf("%+v", a)
	}
	submitted(next, batchOf(next.Sign(find(next))), intents.Overloaded)
	next.Want(task.Plan.On(next).Claim(), intents.Overloaded)
	if a := next.Want(next.Send(raw), intents.OK); !a.Replayed || next.Journal.Next() != before {
		t.Errorf("%+v", a)
	}
}
