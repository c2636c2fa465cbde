package router_test

import (
	"context"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
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
	w.Must(w.Router.Start(t.Context()))
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
	go func() { gone <- w.Router.Start(w.Context()) }()
	<-began
	next := w.Reopen()
	w.Must(w.Journal.(interface{ Close() error }).Close())
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
	w.Must(w.Router.Start(t.Context()))
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
	w.Must(w.Router.Start(t.Context()))
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

// Nobody listens at the recovery: the order failed and may be sent again.
func TestRecoverWithoutExecutor(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Idempotent)
	w, open := left(w, task.CallOrder("feed", `{}`))
	w.Bus.On("skill.call", nil)
	w.Must(w.Router.Start(t.Context()))
	if out := outcome(w, *open.Position); out.Code != intents.DispatchUnavailable || !out.Retryable {
		t.Errorf("%+v", out)
	}
}

// Whoever was revoked since has nothing carried out any more.
func TestRecoverRevoked(t *testing.T) {
	for name, revoke := range map[string]func(*routertest.World){
		"signer": func(w *routertest.World) { w.RevokeKey(w.Manager) },
		"grant": func(w *routertest.World) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		},
		"gateway": func(w *routertest.World) { w.RevokeKey(w.Gateway) },
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
			next.Must(next.Router.Start(t.Context()))
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
	next.Must(next.Router.Start(t.Context()))
	if out := outcome(next, position); out.Status != intents.Done {
		t.Errorf("%+v", out)
	}
}

// A second start finds nothing open and writes nothing.
func TestRecoverOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	w, _ = left(w, task.CallOrder("feed", `{}`))
	w.Must(w.Router.Start(t.Context()))
	before := w.Journal.Next()
	w = w.Restart()
	if w.Journal.Next() != before {
		t.Errorf("%d records more", w.Journal.Next()-before)
	}
}
