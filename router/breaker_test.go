package router_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/storage"
)

// sick is a world with a skill server that fails.
type sick struct {
	*routertest.World
	task  *routertest.Task
	calls int
}

// Reports of an executor about a server.
var (
	answers = func() intents.Report {
		r := routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})
		r.Transport = &intents.Transport{Sent: true}
		return r
	}
	fails = func() intents.Report {
		r := routertest.Failed(intents.ExecutorFailed)
		r.Transport = &intents.Transport{Failure: true}
		return r
	}
)

func newSick(t *testing.T, effect catalog.Effect, o routertest.Options) *sick {
	t.Helper()
	w := routertest.New(t, o)
	w.Data("approval", `{"once":false}`)
	w.Pin("crm.list", effect)
	s := &sick{World: w, task: w.Begun("p1", "crm.list").Started(1)}
	s.server(fails())
	return s
}

// server sets the answer of the server from now on.
func (s *sick) server(r intents.Report) { s.Bus.On("skill.call", routertest.Always(r)) }

// intent is a call that was not made before.
func (s *sick) intent() routertest.Intent {
	s.calls++
	return s.task.CallIntent("crm.list", fmt.Sprintf(`{"n":%d}`, s.calls))
}

// call makes one, and returns its answer and whether the server saw it.
func (s *sick) call() (a *intents.Answer, seen bool) {
	s.Helper()
	before := len(s.Bus.Calls("skill.call"))
	a = s.Do(s.intent())
	return a, len(s.Bus.Calls("skill.call")) > before
}

// sent is a call that reaches the server; refused one that does not.
func (s *sick) sent(code intents.Code) {
	s.Helper()
	if a, seen := s.call(); !seen || a.Code != code {
		s.Fatalf("%s %s, sent: %t", a.Code, a.Reason, seen)
	}
}

func (s *sick) refused() *intents.Answer {
	s.Helper()
	a, seen := s.call()
	if seen || a.Code != intents.DispatchUnavailable || a.Outcome != nil || a.Decision.Verdict != intents.Deny || !a.Decision.Retryable || a.Position == nil || a.Receipt != "" {
		s.Fatalf("%+v, sent: %t", a, seen)
	}
	return a
}

// opened is a world whose breaker is open.
func (s *sick) opened() {
	s.Helper()
	for range breakers.Defaults.Failures {
		s.sent(intents.ExecutorFailed)
	}
}

// on continues in another process.
func (s *sick) on(w *routertest.World) {
	s.World = w
	task := *s.task
	task.Plan = s.task.Plan.On(w)
	s.task = &task
}

// status of the breaker; empty: there is none.
func (s *sick) status() breakers.Breaker {
	s.Helper()
	all := s.Router.Breakers("default")
	if len(all) == 0 {
		return breakers.Breaker{}
	}
	return all[0]
}

// Five failures in a row open a breaker; half a minute later a call is tried, and a success closes
// it. A refused call says so, is recorded once and may be sent again unchanged.
func TestBreaker(t *testing.T) {
	for _, effect := range []catalog.Effect{catalog.Pure, catalog.Once} {
		t.Run(string(effect), func(t *testing.T) {
			s := newSick(t, effect, routertest.Options{})
			for range 4 {
				s.sent(intents.ExecutorFailed)
			}
			s.server(answers())
			s.sent(intents.OK) // begins again
			s.server(fails())
			s.opened()
			at := s.Clock.Now()
			if d := cmp.Diff(breakers.Breaker{Tenant: "default", Server: "crm", Status: breakers.Open, Failures: 5, Since: at, Next: at.Add(30 * time.Second)}, s.status()); d != "" {
				t.Error(d)
			}
			intent := s.intent()
			raw := s.Sign(intent)
			a := s.Want(s.Send(raw), intents.DispatchUnavailable)
			if want := "nothing was sent, since the skill server fails: crm has failed 5 times in a row: since 10:00:00 UTC it is not called, and it is tried again from 10:00:30 UTC on"; a.Reason != want {
				t.Errorf("%q", a.Reason)
			}
			next := s.Journal.Next()
			if again := s.Want(s.Send(raw), intents.DispatchUnavailable); a.RetryAfter != 30 || *again.Position != *a.Position || s.Journal.Next() != next {
				t.Errorf("%+v, and sent again %+v", a, again)
			}
			s.Clock.Move(30*time.Second - time.Millisecond)
			s.refused()
			s.Clock.Move(time.Millisecond)
			s.server(answers())
			s.Want(s.Send(raw), intents.OK) // the refused one, unchanged
			s.sent(intents.OK)
			if got := s.status(); got != (breakers.Breaker{}) {
				t.Errorf("%+v", got)
			}
			if d := cmp.Diff(map[breakers.Status]int64{"open": 1, "half_open": 1, "closed": 1}, s.Router.Counts().Breakers); d != "" {
				t.Error(d)
			}
		})
	}
}

// A server's answers, and failures that are not the server's, open no breaker.
func TestBreakerCountsFailuresOnly(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{})
	tool := routertest.Failed(intents.ExecutorFailed)
	tool.Transport = &intents.Transport{Sent: true}
	for _, r := range []intents.Report{tool, routertest.Failed(intents.MalformedArgs), routertest.Failed(intents.ExecutorTimeout)} {
		s.server(r)
		for range 6 {
			s.sent(r.Code)
		}
	}
	s.Bus.On("skill.call", nil)
	for range 6 {
		s.Want(s.Do(s.intent()), intents.DispatchUnavailable)
	}
	if got := s.status(); got != (breakers.Breaker{}) {
		t.Errorf("%+v", got)
	}
}

// A failed probe opens the breaker again, and so does a minute in which none succeeds.
func TestBreakerReopens(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{})
	s.opened()
	s.Clock.Move(30 * time.Second)
	s.sent(intents.ExecutorFailed)
	s.refused()
	s.Clock.Move(30 * time.Second)
	s.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorTimeout))) // the effect is unknown
	for range 3 {
		s.sent(intents.ExecutorTimeout)
	}
	s.refused()
	s.Clock.Move(time.Minute - time.Millisecond)
	s.refused()
	s.Clock.Move(30*time.Second - time.Millisecond)
	s.refused()
	s.Clock.Move(2 * time.Millisecond)
	s.server(answers())
	s.sent(intents.OK)
}

// Of any number of concurrent calls three are probes. A probe's result after its round no longer
// counts.
func TestBreakerProbes(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{})
	s.opened()
	s.Clock.Move(30 * time.Second)
	g := newGate()
	s.Bus.On("skill.call", g.executor(answers()))
	before := len(s.Bus.Calls("skill.call"))
	var all sync.WaitGroup
	var refused, ok atomic.Int64
	enough := make(chan struct{}, 20)
	for range 12 {
		raw := s.Sign(s.intent())
		all.Go(func() {
			a, err := s.Router.Submit(context.WithoutCancel(t.Context()), raw)
			switch {
			case err != nil:
				t.Error(err)
			case a.Code == intents.DispatchUnavailable:
				refused.Add(1)
			case a.Code == intents.OK:
				ok.Add(1)
			default:
				t.Errorf("%s: %s", a.Code, a.Reason)
			}
			enough <- struct{}{}
		})
	}
	for range 9 {
		<-enough
	}
	for range 3 {
		<-g.began
	}
	if n := len(s.Bus.Calls("skill.call")) - before; n != 3 || refused.Load() != 9 {
		t.Errorf("%d were sent, %d refused", n, refused.Load())
	}
	s.Clock.Move(time.Minute) // the round has ended
	close(g.answer)
	all.Wait()
	if got := s.status(); ok.Load() != 3 || got.Status != breakers.Open {
		t.Errorf("%d answers, %+v", ok.Load(), got)
	}
}

// Nothing of a batch is accepted if a server that it calls is not called; the call is recorded as
// refused. The calls of a batch are one probe.
func TestBreakerBatch(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{})
	s.opened()
	batch := func(code intents.Code) *intents.BatchAnswer {
		var raws [][]byte
		for range 5 {
			raws = append(raws, s.Sign(s.intent()))
		}
		return submitted(s.World, batchOf(raws...), code)
	}
	calls, next := len(s.Bus.Calls("skill.call")), s.Journal.Next()
	b := batch(intents.DispatchUnavailable)
	if b.Fault == nil || b.Fault.RetryAfter != 30 || *b.Index != 0 || s.Journal.Next() != next+1 || len(s.Bus.Calls("skill.call")) != calls {
		t.Errorf("%+v", b)
	}
	s.Clock.Move(30 * time.Second)
	if b := batch(intents.ExecutorFailed); codes(b) != "[EXECUTOR_FAILED CANCELLED CANCELLED CANCELLED CANCELLED]" {
		t.Error(codes(b))
	}
	s.refused()
	s.Clock.Move(30 * time.Second)
	s.server(answers())
	batch(intents.OK)
	s.sent(intents.OK)
}

// A probe that is not accepted is given back.
func TestBreakerGivesBack(t *testing.T) {
	var full atomic.Bool
	s := newSick(t, catalog.Pure, routertest.Options{Wrap: func(j storage.Journal) storage.Journal { return fullJournal{j, &full} }})
	s.opened()
	s.Clock.Move(30 * time.Second)
	s.server(answers())
	full.Store(true)
	for range 5 {
		if _, err := s.Router.Submit(t.Context(), s.Sign(s.intent())); intents.CodeOf(err) != intents.Overloaded {
			t.Fatal(err)
		}
	}
	full.Store(false)
	s.sent(intents.OK)
}

// fullJournal accepts no intent while it is full.
type fullJournal struct {
	storage.Journal
	full *atomic.Bool
}

func (j fullJournal) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if j.full.Load() {
		return storage.Result{}, storage.ErrFull
	}
	return j.Journal.Commit(ctx, c)
}

// One tenant's failures leave another's breaker closed, and one server's that of another.
func TestBreakerOfItsOwn(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{})
	s.Want(s.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	s.Want(s.Admin("skill.approve", catalog.SkillApprove{Tenant: "acme", Skill: "crm.list", Digest: intents.Digest(nil), Effect: catalog.Pure}), intents.OK)
	s.Pin("erp.list", catalog.Pure)
	s.Pin("crm.count", catalog.Pure)
	s.opened()
	s.server(answers())
	p := s.NewPlan("p2")
	p.Tenant = "acme"
	s.Want(p.Open(), intents.OK)
	s.Want(p.Claim(), intents.OK)
	s.Want(p.Plan(routertest.Steps(1, "crm.list")), intents.OK)
	s.Want(p.Started(1).Call("crm.list", `{}`), intents.OK)
	s.Want(s.Begun("p3", "erp.list").Started(1).Call("erp.list", `{}`), intents.OK)
	s.Want(s.Begun("p4", "crm.count").Started(1).Call("crm.count", `{}`), intents.DispatchUnavailable)
}

// A start reads the breakers, and an open one probes before it closes.
func TestBreakerSurvives(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{})
	s.opened()
	s.on(s.Restart())
	s.refused()
	s.Clock.Move(30 * time.Second)
	s.sent(intents.ExecutorFailed)
	s.on(s.Restart())
	s.refused()
	s.Clock.Move(30 * time.Second)
	s.server(answers())
	s.sent(intents.OK)
	s.on(s.Restart())
	if got := s.status(); got != (breakers.Breaker{}) {
		t.Errorf("%+v", got)
	}
}

// unread is a store that cannot be read or written.
type unread struct{}

func (unread) Get(context.Context) ([]byte, error) { return nil, storage.ErrNotReady }
func (unread) Put(context.Context, []byte) error   { return storage.ErrNotReady }

// Without their store breakers work as long as the process, and the next one starts with all closed.
func TestBreakerStoreAway(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{BreakerStore: unread{}})
	s.opened()
	s.refused()
	s.on(s.Restart())
	s.sent(intents.ExecutorFailed)
}

// The breaker is asked when an approved intent is released. What it refuses ends, and may be sent again.
func TestBreakerOfHeld(t *testing.T) {
	s := newSick(t, catalog.Once, routertest.Options{})
	s.Approval(`{"once":true,"skills":["crm.list"]}`, "ben")
	held := s.Want(s.Do(s.intent()), intents.ApprovalRequired)
	later := s.Want(s.Do(s.intent()), intents.ApprovalRequired)
	s.Data("approval", `{"once":false}`)
	s.opened()
	approve := func(a *intents.Answer) *intents.Answer {
		s.Want(s.Do(routertest.Intent{
			By: s.Gateway, User: "ben", Roles: []string{"approver"}, Type: "hitl.approve", Ctx: intents.Context{TurnID: "approval"},
			Args: catalog.Approve{IntentID: a.IntentID, Decision: catalog.DecisionApprove},
		}), intents.OK)
		out, err := s.Router.Await(t.Context(), *a.Position)
		s.Must(err)
		return out
	}
	calls := len(s.Bus.Calls("skill.call"))
	if a := s.Want(approve(held), intents.DispatchUnavailable); len(s.Bus.Calls("skill.call")) != calls || !a.Outcome.Retryable {
		t.Errorf("sent, or for good: %+v", a.Outcome)
	}
	s.Clock.Move(30 * time.Second)
	s.server(answers())
	s.Want(approve(later), intents.OK)
	if got := s.status(); got != (breakers.Breaker{}) {
		t.Errorf("%+v", got)
	}
}

// The terms are the router's, and without breakers every call is sent.
func TestBreakerTerms(t *testing.T) {
	s := newSick(t, catalog.Pure, routertest.Options{Breakers: &breakers.Terms{Failures: 2, Reset: time.Second, Probes: 1, Probing: 2 * time.Second, Sync: time.Hour}})
	s.sent(intents.ExecutorFailed)
	s.sent(intents.ExecutorFailed)
	s.refused()
	s.Clock.Move(time.Second)
	s.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorTimeout)))
	s.sent(intents.ExecutorTimeout)
	s.refused()

	off := newSick(t, catalog.Pure, routertest.Options{Breakers: &breakers.Terms{Probes: 1, Probing: 1, Sync: time.Hour}})
	for range 9 {
		off.sent(intents.ExecutorFailed)
	}
}

// Counts are stored every Terms.Sync, and at the end.
func TestBreakerSync(t *testing.T) {
	terms := breakers.Defaults
	terms.Sync = time.Millisecond
	s := newSick(t, catalog.Pure, routertest.Options{Breakers: &terms})
	stop := s.RunRouter()
	s.sent(intents.ExecutorFailed)
	stop()
	s.on(s.Restart())
	if got := s.status(); got.Failures != 1 || got.Status != breakers.Closed {
		t.Errorf("%+v", got)
	}
}
