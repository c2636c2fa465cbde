package router_test

import (
	"context"
	"errors"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/journaltest"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// hookedJournal is a journal that runs a hook once between decision and commit, after the commit,
// or after a lookup.
type hookedJournal struct {
	storage.Journal
	beforeCommit, afterCommit, afterLookup func()

	commits      int
	beforeFinish func(n int) // each time, counted from 1
	finishes     int         // of one caller at a time
}

func (j *hookedJournal) Finish(ctx context.Context, of int64, attempt int, rec storage.Record, writes []storage.Subject) (int64, error) {
	if f := j.beforeFinish; f != nil {
		j.finishes++
		f(j.finishes)
	}
	return j.Journal.Finish(ctx, of, attempt, rec, writes)
}

func (j *hookedJournal) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	j.commits++
	if f := j.beforeCommit; f != nil {
		j.beforeCommit = nil
		f()
	}
	res, err := j.Journal.Commit(ctx, c)
	if f := j.afterCommit; f != nil {
		j.afterCommit = nil
		f()
	}
	return res, err
}

func (j *hookedJournal) Lookup(ctx context.Context, k storage.Key) (storage.Holder, bool, error) {
	h, found, err := j.Journal.Lookup(ctx, k)
	if f := j.afterLookup; f != nil {
		j.afterLookup = nil
		f()
	}
	return h, found, err
}

// withHooks is a world whose journal runs the test's hooks.
func withHooks(t *testing.T) (*routertest.World, *hookedJournal) {
	t.Helper()
	return withHooksAnd(t, routertest.Options{})
}

func withHooksAnd(t *testing.T, o routertest.Options) (*routertest.World, *hookedJournal) {
	t.Helper()
	j := &hookedJournal{}
	o.Wrap = func(inner storage.Journal) storage.Journal {
		j.Journal = inner
		return j
	}
	return routertest.New(t, o), j
}

// What a decision read may change before its commit: then it is decided again, and fails with what
// it depended on.
func TestStale(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Pure)
	for _, c := range []struct {
		name   string
		change func()
		intent func() routertest.Intent
		code   intents.Code
	}{
		{"pin", func() { w.Pin("feed", catalog.Once) }, func() routertest.Intent { return task.CallIntent("feed", `{"n":1}`) }, intents.OK},
		{"tenant data", func() { w.Data("skills_allow", `["other"]`) }, func() routertest.Intent { return task.CallIntent("feed", `{"n":2}`) }, intents.PolicyDenied},
		{"task", func() { w.OK(task.ClaimIntent(2)) }, func() routertest.Intent {
			return task.Intent("read_lines", catalog.ReadLines{FileID: "f", N: 1})
		}, intents.KeyRevoked},
		{"epoch", func() { w.OK(task.ClaimIntent(3)) }, func() routertest.Intent {
			o := task.ClaimIntent(3)
			o.Args = catalog.PlanClaim{PlanID: routertest.PlanID("p1"), Epoch: 3, Driver: "other"}
			return o
		}, intents.MalformedArgs},
		{"grant", func() {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "bob", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		}, func() routertest.Intent { o := find(w); o.User = "bob"; return o }, intents.GrantInvalid},
		{"role", func() {
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*"}}}), intents.OK)
		}, func() routertest.Intent { return find(w) }, intents.RBACForbidden},
		{"key", func() { w.RevokeKey(w.Gateway) }, func() routertest.Intent { return w.NewPlan("p8").OpenIntent() }, intents.KeyRevoked},
	} {
		raw := w.Sign(c.intent())
		j.beforeCommit = c.change
		if a := w.Send(raw); a.Code != c.code {
			t.Errorf("%s: %s, want %s", c.name, a.Code, c.code)
		}
		if j.beforeCommit != nil {
			t.Errorf("%s: nothing was committed", c.name)
		}
	}
	if last := w.Bus.Calls("skill.call"); len(last) != 1 || last[0].Ticket.Pins[0].Effect != "once" {
		t.Errorf("dispatched under %+v", last)
	}
}

// Another intent of a plan changes nothing that an intent of a task reads, once the plan has read of its
// source: the latter is committed as it was decided.
func TestNotStale(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Once)
	w.Want(task.Call("feed", `{"n":0}`), intents.OK)
	for name, change := range map[string]func(){
		"acts":     func() { w.Want(task.Call("feed", `{"n":1}`), intents.OK) },
		"is asked": func() { w.OK(w.NewPlan("p2").OpenIntent()) },
	} {
		raw := w.Sign(task.Intent("read_lines", catalog.ReadLines{FileID: "f", N: 1}))
		j.beforeCommit, j.commits = change, 0
		w.Want(w.Send(raw), intents.OK)
		if j.commits != 2 {
			t.Errorf("%s: %d commits", name, j.commits)
		}
	}
}

// Endless changes do not cause endless decisions.
func TestStaleForEver(t *testing.T) {
	j := &restless{}
	w := routertest.New(t, routertest.Options{Wrap: func(inner storage.Journal) storage.Journal { j.Journal = inner; return j }})
	j.on = true
	before := w.Journal.Next()
	w.Want(w.Do(find(w)), intents.Overloaded)
	if w.Journal.Next() != before || j.commits > 20 {
		t.Errorf("%d records, %d commits tried", w.Journal.Next()-before, j.commits)
	}
	j.on = false
	w.OK(find(w)) // every slot was freed
}

type restless struct {
	storage.Journal
	on      bool
	commits int
}

func (j *restless) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if j.on {
		j.commits++
		return storage.Result{Verdict: storage.Stale}, nil
	}
	return j.Journal.Commit(ctx, c)
}

// The loser of the commit is a duplicate of the winner.
func TestLost(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Once)
	for name, o := range map[string]routertest.Intent{"dispatched": task.CallIntent("feed", `{}`), "by the router": w.NewPlan("p2").OpenIntent()} {
		winner, loser := w.Sign(o), w.Sign(o)
		var won *intents.Answer
		j.beforeCommit = func() { won = w.Want(w.Send(winner), intents.OK) }
		a := w.Want(w.Send(loser), intents.OK)
		if won == nil || !a.Replayed || a.Receipt != won.Receipt || a.IntentID != won.IntentID {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if n := len(w.Bus.Calls("skill.call")); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// Another intent may take the key: it is named, and a record says so.
func TestLostToAnotherIntent(t *testing.T) {
	w, j := withHooks(t)
	o := find(w)
	o.Key = "k"
	other := o
	other.Args = catalog.SkillFind{Query: "other"}
	j.beforeCommit = func() { w.OK(other) }
	if a := w.Want(w.Do(o), intents.ConflictIdempotency); a.Position == nil {
		t.Error("not recorded")
	}
}

// An equal intent that is committed between lookup and apply makes the transition illegal by its
// own effect: still a duplicate, not a refusal.
func TestTwinBetweenLookupAndApply(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Once)
	for name, o := range map[string]routertest.Intent{"once": task.CallIntent("feed", `{}`), "open": w.NewPlan("p7").OpenIntent()} {
		winner, loser := w.Sign(o), w.Sign(o)
		j.afterLookup = func() { w.Want(w.Send(winner), intents.OK) }
		if a := w.Want(w.Send(loser), intents.OK); !a.Replayed {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

var errDisk = errors.New("the disk is gone")

// Whether a failed commit was written is unknown: never a denial. If it was not, the intent can be
// sent again; if it was, recovery ends it.
func TestUnknownCommit(t *testing.T) {
	for _, persists := range []bool{false, true} {
		for _, name := range []string{"dispatched", "by the router"} {
			w := routertest.New(t, routertest.Options{})
			task := started(w, catalog.Once)
			o := task.CallIntent("feed", `{}`)
			if name == "by the router" {
				o = task.ClaimIntent(2)
			}
			raw := w.Sign(o)
			inMemory(w).FailNext(errDisk, persists)
			a := w.Want(w.Send(raw), intents.InFlight)
			if a.Position != nil || a.Receipt != "" || a.Decision != nil {
				t.Errorf("%s, persists %v: %+v", name, persists, a)
			}
			again := w.Send(raw)
			switch {
			case !persists || name == "by the router":
				if w.Want(again, intents.OK); again.Replayed != persists {
					t.Errorf("%s, persists %v: replayed %v", name, persists, again.Replayed)
				}
			default:
				w.Want(again, intents.InFlight)
				if out := outcome(w.Restart(), *again.Position); out.Code != intents.Indeterminate {
					t.Errorf("after the restart: %+v", out)
				}
			}
		}
	}
}

// A refusal that cannot be recorded is not a refusal but our failure; it is not answered.
func TestUnrecordedRefusalIsOurFailure(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	o := find(w)
	o.Roles = []string{"auditor"}
	inMemory(w).FailNext(errDisk, false)
	a := w.Want(w.Do(o), intents.Internal)
	if a.Position != nil || a.Decision != nil {
		t.Errorf("%+v", a)
	}
}

func TestNoDisk(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	inMemory(w).FailNext(storage.ErrFull, false)
	w.Want(w.Do(find(w)), intents.Overloaded)
	w.OK(find(w))
}

// An outcome that cannot be written is not answered: the intent is in flight until it is written.
func TestOutcomeNotDurable(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		inMemory(w).FailNext(errDisk, false)
		return routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})
	})
	a := w.Want(task.Call("feed", `{}`), intents.InFlight)
	if a.Outcome != nil {
		t.Errorf("told %+v", a.Outcome)
	}
	later, err := w.Router.Await(t.Context(), *a.Position)
	w.Must(err)
	if w.Want(later, intents.OK); later.Receipt == "" {
		t.Errorf("%+v", later)
	}
}

func inMemory(w *routertest.World) *journaltest.Journal {
	w.Helper()
	j, ok := w.Journal.(*journaltest.Journal)
	if !ok {
		w.Fatal("not the journal in memory")
	}
	return j
}

// A caller that goes away while the intent is committed does not stop it.
func TestCallerGoesAway(t *testing.T) {
	w, j := withHooks(t)
	task := started(w, catalog.Once)
	ctx, cancel := context.WithCancel(t.Context())
	j.beforeCommit = cancel
	raw := w.Sign(task.CallIntent("feed", `{}`))
	w.Want(w.SendContext(ctx, raw), intents.OK)
	if a := w.Want(w.Send(raw), intents.OK); !a.Replayed {
		t.Error("it was not carried out")
	}
	// If the caller is gone before the decision, nothing is left.
	before := w.Journal.Next()
	w.Want(w.SendContext(ctx, w.Sign(task.CallIntent("feed", `{"n":2}`))), intents.Internal)
	if w.Journal.Next() != before {
		t.Error("records were made")
	}
}

// Slots bound what runs at once; tasks have slots of their own, intents of the router need none,
// and every slot is freed.
func TestOverloaded(t *testing.T) {
	w := routertest.New(t, routertest.Options{Slots: 1, ChildSlots: 1})
	task := started(w, catalog.Pure)
	g := newGate()
	w.Bus.On("soul.get", g.executor(routertest.Done(catalog.Soul{})))
	soul := routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}}
	first := make(chan *intents.Answer, 1)
	raw := w.Sign(soul)
	go func() { first <- w.Send(raw) }()
	<-g.began
	before := w.Journal.Next()
	a := w.Want(w.Do(find(w)), intents.Overloaded)
	if a.Position != nil || w.Journal.Next() != before || !a.Code.Info().Retryable {
		t.Errorf("%+v", a)
	}
	w.Want(task.Call("feed", `{}`), intents.OK)
	w.Want(w.NewPlan("p2").Open(), intents.OK)
	if a := w.Want(w.Send(raw), intents.InFlight); a.Position == nil {
		t.Error("a duplicate needs no slot")
	}
	close(g.answer)
	w.Want(<-first, intents.OK)
	for range 3 {
		w.OK(find(w))
		w.OK(soul)
	}
}

// TestSlotShares: there are never more intents than slots. If those of one key and one tenant have
// taken all that they may, another key and each other tenant still find some.
func TestSlotShares(t *testing.T) {
	const slots = 32
	w := routertest.New(t, routertest.Options{Slots: slots})
	keys := []struct{ tenant, key string }{{"default", "one"}, {"default", "two"}, {"acme", "three"}, {"globex", "four"}, {"initech", "five"}}
	for i, of := range keys {
		if i > 1 {
			w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: of.tenant}}), intents.OK)
		}
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: of.tenant, APIKey: &catalog.APIKey{ID: of.key, Hash: intents.Digest([]byte(of.key)), UserID: "ana", MaxRoles: []string{"user"}}}), intents.OK)
	}
	g := newGate()
	w.Bus.On("soul.get", g.executor(routertest.Done(catalog.Soul{})))
	answers := make(chan *intents.Answer, slots)
	// begin fills the available slots and returns how many those were.
	begin := func(tenant, key string) (n int) {
		for ; ; n++ {
			raw := w.Sign(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}, Tenant: tenant, Key: catalog.RandomKey(), Grant: func(g *intents.Grant) { g.Act.Client = intents.ClientOf(key) }})
			done := make(chan *intents.Answer, 1)
			go func() { done <- w.Send(raw) }()
			select {
			case <-g.began:
				go func() { answers <- <-done }()
			case a := <-done:
				w.Want(a, intents.Overloaded)
				return n
			}
		}
	}
	began := 0
	for _, of := range keys {
		n := begin(of.tenant, of.key)
		if n == 0 || n > slots*7/8 {
			t.Errorf("of tenant %s, key %s %d are carried out", of.tenant, of.key, n)
		}
		began += n
	}
	if got := w.Router.Load().Intents; got != began || got > slots {
		t.Errorf("%d of %d are carried out in %d slots", got, began, slots)
	}
	close(g.answer)
	for range began {
		w.Want(<-answers, intents.OK)
	}
	if got := w.Router.Load().Intents; got != 0 {
		t.Errorf("%d slots are still taken", got)
	}
}
