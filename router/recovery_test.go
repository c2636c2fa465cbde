package router_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/router/routertest"
)

// dies is an executor whose router dies while it works.
func dies(began chan<- struct{}, died <-chan struct{}) routertest.Executor {
	return func(context.Context, routertest.Call) intents.Report {
		close(began)
		<-died
		return routertest.Failed(intents.ExecutorFailed)
	}
}

// outcome of the order at a position.
func outcome(w *routertest.World, position int64) *intents.Outcome {
	w.Helper()
	a, err := w.Router.Order(w.Context(), position)
	w.Must(err)
	if a.Outcome == nil {
		w.Fatalf("order %d is still open", position)
	}
	return a.Outcome
}

// An idempotent order is dispatched again with the next attempt, the same
// position and the decision of then.
func TestRecoverIdempotent(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	call := task.CallOrder("feed", `{}`)
	w, open := left(w, call)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Clock.Move(100e9) // expiry is not asked again
	w.Start()
	out := outcome(w, *open.Position)
	calls := w.Bus.Calls("skill.call")
	if out.Status != intents.Done || out.Attempt != 2 || len(calls) != 2 {
		t.Fatalf("%+v, %d dispatches", out, len(calls))
	}
	first, second := calls[0].Ticket, calls[1].Ticket
	if second.Attempt != 2 || second.Position != first.Position || second.IntentID != open.IntentID || second.Scope.Task != task.TaskID || len(second.Pins) != 1 {
		t.Errorf("%+v", second)
	}
}

// diesAgain starts a router that ends while it carries out what was left open.
func diesAgain(w *routertest.World) *routertest.World {
	w.Helper()
	began, died := make(chan struct{}), make(chan struct{})
	w.Bus.On("skill.call", dies(began, died))
	gone := make(chan error, 1)
	end, leave := context.WithCancel(w.Context())
	defer leave()
	ctx := clock.WithEnd(w.Context(), end)
	go func() { gone <- errors.Join(w.Router.Start(ctx), w.Router.Recover(ctx)) }()
	<-began
	next := w.Reopen()
	w.Must(w.Journal.(interface{ Close() error }).Close())
	leave()
	close(died)
	<-gone
	return next
}

// An order that was open when two routers in a row ended unasked may be what
// ended them.
func TestRecoverWhatWasOpenAtTwoCrashes(t *testing.T) {
	w := routertest.New(t, routertest.Options{Crashed: true})
	task := started(w, catalog.Idempotent)
	w, open := left(w, task.CallOrder("feed", `{}`))
	w = diesAgain(w)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Start()
	out := outcome(w, *open.Position)
	if out.Code != intents.Indeterminate || out.Attempt != 2 || len(w.Bus.Calls("skill.call")) != 2 {
		t.Errorf("%+v, %d dispatches", out, len(w.Bus.Calls("skill.call")))
	}
}

// After three attempts nobody knows any more.
func TestRecoverIdempotentThreeTimes(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	w, open := left(w, task.CallOrder("feed", `{}`))
	w = diesAgain(diesAgain(w))
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Start()
	out := outcome(w, *open.Position)
	if out.Code != intents.Indeterminate || out.Attempt != 3 || out.Retryable || len(w.Bus.Calls("skill.call")) != 3 {
		t.Errorf("%+v, %d dispatches", out, len(w.Bus.Calls("skill.call")))
	}
	task.Plan = task.Plan.On(w)
	a := w.Want(task.Call("feed", `{}`), intents.Indeterminate)
	if !a.Replayed {
		t.Error("the key is free")
	}
}

// bubble runs a test on a clock of its own. The policy engine is made outside it.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	routertest.New(t, routertest.Options{})
	synctest.Test(t, test)
}

// recovering starts a router whose recovery goes on beside it; stop ends it and waits.
func recovering(w *routertest.World) (stop func()) {
	w.Helper()
	w.Must(w.Router.Start(w.Context()))
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Router.Recover(ctx) }()
	return func() {
		w.Helper()
		cancel()
		w.Must(<-ended)
	}
}

// runLimit of skill.call.
func runLimit(w *routertest.World) time.Duration {
	row, ok := catalog.Builtin().Lookup("skill.call")
	if !ok {
		w.Fatal("no skill.call")
	}
	return row.Run()
}

// An executor may be back later than the router: the order waits for it, the router
// takes others meanwhile, and whoever sends it again is told that it is in flight.
func TestRecoverAwaitsExecutor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		call := task.CallOrder("feed", `{}`)
		w, open := left(w, call)
		task.Plan = task.Plan.On(w)
		w.Bus.On("skill.call", nil)
		stop := recovering(w)
		defer stop()
		if !w.Router.Ready() {
			t.Fatal("not ready while an order waits for its executor")
		}
		w.OK(find(w))
		time.Sleep(runLimit(w) - time.Second)
		w.Want(w.Do(call), intents.InFlight)
		w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
		time.Sleep(time.Second / 2)
		synctest.Wait()
		if out := outcome(w, *open.Position); out.Status != intents.Done || out.Attempt != 2 || len(w.Bus.Calls("skill.call")) != 2 {
			t.Errorf("%+v, %d dispatches", out, len(w.Bus.Calls("skill.call")))
		}
	})
}

// Where none comes in the time that the order may run, nobody knows what became of
// it: that it failed, and nothing was carried out, would be a lie.
func TestRecoverWithoutExecutor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		call := task.CallOrder("feed", `{}`)
		w, open := left(w, call)
		task.Plan = task.Plan.On(w)
		w.Bus.On("skill.call", nil)
		stop := recovering(w)
		time.Sleep(runLimit(w) + time.Second)
		synctest.Wait()
		stop()
		if out := outcome(w, *open.Position); out.Status != intents.StatusIndetermined || out.Code != intents.Indeterminate || out.Retryable || out.Attempt != 2 {
			t.Errorf("%+v", out)
		}
		w.Want(w.Do(call), intents.Indeterminate)
	})
}

// Told to end while an order waits, it leaves the order open, and the next start
// carries it on.
func TestRecoverStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		w, open := left(w, task.CallOrder("feed", `{}`))
		w.Bus.On("skill.call", nil)
		stop := recovering(w)
		time.Sleep(time.Second)
		stop()
		if a, err := w.Router.Order(t.Context(), *open.Position); err != nil || a.Code != intents.InFlight {
			t.Fatalf("%+v, %v", a, err)
		}
		w = w.Reopen()
		w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
		w.Start()
		if out := outcome(w, *open.Position); out.Status != intents.Done || out.Attempt != 3 {
			t.Errorf("%+v", out)
		}
	})
}

// One order that waits for its executor holds up none of the others.
func TestRecoverHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		session := routertest.Order{By: w.Manager, Type: "session.create", Args: catalog.SessionCreate{SessionID: "s1"}}
		began, died := make(chan struct{}), make(chan struct{})
		w.Bus.On("session.create", dies(began, died))
		go w.Send(w.Seal(session))
		<-began
		second := w.Journal.Next() - 1
		next, open := left(w, task.CallOrder("feed", `{}`))
		close(died)
		next.Bus.On("skill.call", nil)
		next.Bus.On("session.create", routertest.Always(routertest.Done(catalog.Session{SessionID: "s1"})))
		stop := recovering(next)
		synctest.Wait()
		if out := outcome(next, second); out.Attempt != 2 {
			t.Errorf("%+v", out)
		}
		if a, err := next.Router.Order(t.Context(), *open.Position); err != nil || a.Code != intents.InFlight {
			t.Errorf("%+v, %v", a, err)
		}
		stop()
	})
}

// Whoever was revoked since has nothing carried out any more.
func TestRecoverRevoked(t *testing.T) {
	for name, revoke := range map[string]func(*routertest.World){
		"signer": func(w *routertest.World) { w.RevokeKey(w.Manager) },
		"grant": func(w *routertest.World) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		},
		"gateway": func(w *routertest.World) { w.RevokeKey(w.Gateway) },
		"user":    disable,
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			order := routertest.Order{By: w.Manager, Type: "session.create", Args: catalog.SessionCreate{SessionID: "s1"}}
			began, died := make(chan struct{}), make(chan struct{})
			w.Bus.On("session.create", dies(began, died))
			go w.Send(w.Seal(order))
			<-began
			position := w.Journal.Next() - 1
			revoke(w)
			next := w.Reopen()
			w.Must(w.Journal.(interface{ Close() error }).Close())
			close(died)
			next.Start()
			if out := outcome(next, position); out.Code != intents.Indeterminate || out.Retryable {
				t.Errorf("%+v", out)
			}
			if n := len(next.Bus.Calls("session.create")); n != 1 {
				t.Errorf("%d dispatches", n)
			}
		})
	}
}

// A task that has ended since is no revocation: its order is carried on.
func TestRecoverEndedTask(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	began, died := make(chan struct{}), make(chan struct{})
	w.Bus.On("skill.call", dies(began, died))
	go w.Send(w.Seal(task.CallOrder("feed", `{}`)))
	<-began
	position := w.Journal.Next() - 1
	w.Want(task.Finish("failed", "", "gave up"), intents.OK)
	next := w.Reopen()
	w.Must(w.Journal.(interface{ Close() error }).Close())
	close(died)
	next.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	next.Start()
	if out := outcome(next, position); out.Status != intents.Done {
		t.Errorf("%+v", out)
	}
}

// A second start finds nothing open and writes nothing.
func TestRecoverOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	w, _ = left(w, task.CallOrder("feed", `{}`))
	w.Start()
	before := w.Journal.Next()
	w = w.Restart()
	if w.Journal.Next() != before {
		t.Errorf("%d records more", w.Journal.Next()-before)
	}
}
