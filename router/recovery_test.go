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
	"aob.dev/writ/internal/testing/routertest"
)

// dies is an executor whose router dies while it works.
func dies(began chan<- struct{}, died <-chan struct{}) routertest.Executor {
	return func(context.Context, routertest.Call) intents.Report {
		close(began)
		<-died
		return routertest.Failed(intents.ExecutorFailed)
	}
}

// outcome of the intent at a position.
func outcome(w *routertest.World, position int64) *intents.Outcome {
	w.Helper()
	a, err := w.Router.Intent(w.Context(), position)
	w.Must(err)
	if a.Outcome == nil {
		w.Fatalf("intent %d is still open", position)
	}
	return a.Outcome
}

// An idempotent intent is dispatched again with the next attempt, the same position and the
// original decision.
func TestRecoverIdempotent(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	call := task.CallIntent("feed", `{}`)
	w, open := left(w, call)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Clock.Move(100e9) // expiry is not checked again
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

// crashInRecovery starts a router that ends while it executes what was left open.
func crashInRecovery(w *routertest.World) *routertest.World {
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

// An intent that was open when two routers in a row crashed may be the cause.
func TestRecoverOpenAfterTwoCrashes(t *testing.T) {
	w := routertest.New(t, routertest.Options{Crashed: true})
	task := started(w, catalog.Idempotent)
	w, open := left(w, task.CallIntent("feed", `{}`))
	w = crashInRecovery(w)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Start()
	out := outcome(w, *open.Position)
	if out.Code != intents.Indeterminate || out.Attempt != 2 || len(w.Bus.Calls("skill.call")) != 2 {
		t.Errorf("%+v, %d dispatches", out, len(w.Bus.Calls("skill.call")))
	}
}

// After three attempts the effect stays unknown.
func TestRecoverIdempotentThreeTimes(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	w, open := left(w, task.CallIntent("feed", `{}`))
	w = crashInRecovery(crashInRecovery(w))
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

// recovering starts a router whose recovery runs concurrently; stop ends it and waits.
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

// runLimit is how long a skill.call waits for its executor.
func runLimit(w *routertest.World) time.Duration {
	row, ok := catalog.Builtin().Lookup("skill.call")
	if !ok {
		w.Fatal("no skill.call")
	}
	return row.Start()
}

// An executor may be back later than the router: the intent waits for it, the router accepts others
// meanwhile, and a resubmission is in flight.
func TestRecoverAwaitsExecutor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		call := task.CallIntent("feed", `{}`)
		w, open := left(w, call)
		task.Plan = task.Plan.On(w)
		w.Bus.On("skill.call", nil)
		stop := recovering(w)
		defer stop()
		if !w.Router.Ready() {
			t.Fatal("not ready while an intent waits for its executor")
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

// If no executor comes in the time that the intent may run, its effect is unknown: an outcome of
// failed, without effect, would be false.
func TestRecoverWithoutExecutor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		call := task.CallIntent("feed", `{}`)
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

// If it is stopped while an intent waits, it leaves the intent open, and the next start continues
// it.
func TestRecoverStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		w, open := left(w, task.CallIntent("feed", `{}`))
		w.Bus.On("skill.call", nil)
		stop := recovering(w)
		time.Sleep(time.Second)
		stop()
		if a, err := w.Router.Intent(t.Context(), *open.Position); err != nil || a.Code != intents.InFlight {
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

// One intent that waits for its executor delays none of the others.
func TestRecoverHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Idempotent)
		session := routertest.Intent{By: w.Manager, Type: "session.create", Args: catalog.SessionCreate{SessionID: "s1"}}
		began, died := make(chan struct{}), make(chan struct{})
		w.Bus.On("session.create", dies(began, died))
		go w.Send(w.Sign(session))
		<-began
		second := w.Journal.Next() - 1
		next, open := left(w, task.CallIntent("feed", `{}`))
		close(died)
		next.Bus.On("skill.call", nil)
		next.Bus.On("session.create", routertest.Always(routertest.Done(catalog.Session{SessionID: "s1"})))
		stop := recovering(next)
		synctest.Wait()
		if out := outcome(next, second); out.Attempt != 2 {
			t.Errorf("%+v", out)
		}
		if a, err := next.Router.Intent(t.Context(), *open.Position); err != nil || a.Code != intents.InFlight {
			t.Errorf("%+v, %v", a, err)
		}
		stop()
	})
}

// An intent that was revoked since is not executed any more.
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
			intent := routertest.Intent{By: w.Manager, Type: "session.create", Args: catalog.SessionCreate{SessionID: "s1"}}
			began, died := make(chan struct{}), make(chan struct{})
			w.Bus.On("session.create", dies(began, died))
			go w.Send(w.Sign(intent))
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

// A task that has ended since is not a revocation: its intent is continued.
func TestRecoverEndedTask(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	began, died := make(chan struct{}), make(chan struct{})
	w.Bus.On("skill.call", dies(began, died))
	go w.Send(w.Sign(task.CallIntent("feed", `{}`)))
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
	w, _ = left(w, task.CallIntent("feed", `{}`))
	w.Start()
	before := w.Journal.Next()
	w = w.Restart()
	if w.Journal.Next() != before {
		t.Errorf("%d records more", w.Journal.Next()-before)
	}
}
