package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// kept is a report that an executor keeps.
func kept(w *routertest.World, r intents.Report) bus.ReportReply {
	w.Helper()
	raw, err := json.Marshal(r)
	w.Must(err)
	return bus.ReportReply{State: bus.ReportDone, Report: raw}
}

var paid = routertest.Done(catalog.SkillCallResult{Output: []byte(`"paid"`)})

// An intent that its executor has not begun gets another ticket of the same attempt.
func TestUnstartedGetsAnotherTicket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Once)
		busy := 2
		w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
			if busy--; busy >= 0 {
				w.Clock.Move(intents.TicketLife + intents.Leeway)
				return intents.Report{Status: intents.Unstarted, Code: intents.ExecutorTimeout}
			}
			return paid
		})
		a := w.Want(task.Call("feed", `{}`), intents.OK)
		calls := w.Bus.Calls("skill.call")
		if len(calls) != 3 || a.Outcome.Attempt != 1 {
			t.Fatalf("%d tickets, %+v", len(calls), a.Outcome)
		}
		first, last := calls[0].Ticket, calls[2].Ticket
		if last.Attempt != 1 || !last.Deadline.Equal(first.Deadline) || last.BeginBy.Sub(first.BeginBy) != 2*(intents.TicketLife+intents.Leeway) {
			t.Errorf("%+v\n%+v", first, last)
		}
	})
}

// One that has had no turn until its deadline has failed, also if it may happen once only: nothing
// was started.
func TestUnstartedUntilTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Once)
		w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
			w.Clock.Move(intents.TicketLife)
			return intents.Report{Status: intents.Unstarted, Code: intents.ExecutorTimeout}
		})
		if out := w.Want(task.Call("feed", `{}`), intents.ExecutorTimeout).Outcome; out.Status != intents.Failed || !out.Retryable {
			t.Errorf("%+v", out)
		}
	})
}

// A lost answer is asked for before an effect is unknown.
func TestLostAnswerIsAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Once)
		w.Bus.On("skill.call", func(ctx context.Context, c routertest.Call) intents.Report {
			w.Bus.Keep(c.Ticket.IntentID, 1, kept(w, paid))
			<-ctx.Done()
			return intents.Report{}
		})
		w.Bus.Lose("skill.call")
		if out := w.Want(task.Call("feed", `{}`), intents.OK).Outcome; out.Attempt != 1 || len(w.Bus.Calls("skill.call")) != 1 {
			t.Errorf("%+v", out)
		}
	})
}

// succeeding opens a world of a router that succeeds another one, which died with an intent open, and
// lets it recover. Tickets of the dead one can be begun for ten seconds.
func succeeding(t *testing.T, effect catalog.Effect, reply func(*routertest.World) bus.ReportReply) (w *routertest.World, open *intents.Answer, stop func()) {
	t.Helper()
	w = routertest.New(t, routertest.Options{})
	task := started(w, effect)
	w.InTerm(newTerm(10 * time.Second))
	w, open = left(w, task.CallIntent("feed", `{}`))
	w.Bus.Keep(open.IntentID, 1, reply(w))
	return w, open, recovering(w)
}

// After the death of a router the executor's report ends an intent, whatever its effect, without
// another attempt.
func TestRecoverByReport(t *testing.T) {
	for _, effect := range []catalog.Effect{catalog.Pure, catalog.Idempotent, catalog.Once} {
		bubble(t, func(t *testing.T) {
			t.Helper()
			w, open, stop := succeeding(t, effect, func(w *routertest.World) bus.ReportReply { return kept(w, paid) })
			defer stop()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if out := outcome(w, *open.Position); out.Status != intents.Done || out.Attempt != 1 || len(w.Bus.Calls("skill.call")) != 1 {
				t.Errorf("%s: %+v", effect, out)
			}
		})
	}
}

// The executors of a node ended with its process: nobody asks them, whatever they would say.
func TestRecoverOfOneProcess(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w, open := left(w, task.CallIntent("feed", `{}`))
	w.Bus.Keep(open.IntentID, 1, kept(w, paid))
	w.Start()
	if out := outcome(w, *open.Position); out.Code != intents.Abandoned {
		t.Errorf("%+v", out)
	}
}

// A call that runs is waited for, beyond its time, too.
func TestRecoverRunning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w, open, stop := succeeding(t, catalog.Once, func(*routertest.World) bus.ReportReply {
			return bus.ReportReply{State: bus.ReportRunning}
		})
		defer stop()
		time.Sleep(10 * time.Minute)
		if a, err := w.Router.Intent(w.Context(), *open.Position); err != nil || a.Outcome != nil {
			t.Errorf("%+v %v", a, err)
		}
		w.Bus.Keep(open.IntentID, 1, kept(w, paid))
		time.Sleep(time.Second)
		synctest.Wait()
		if out := outcome(w, *open.Position); out.Status != intents.Done {
			t.Errorf("%+v", out)
		}
	})
}

// An executor that is not there yet is waited for as long as when it is dispatched.
func TestRecoverAskingInVain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w, open, stop := succeeding(t, catalog.Once, func(*routertest.World) bus.ReportReply { return bus.ReportReply{} })
		defer stop()
		time.Sleep(runLimit(w) - time.Second)
		if a, err := w.Router.Intent(w.Context(), *open.Position); err != nil || a.Outcome != nil {
			t.Errorf("%+v %v", a, err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if out := outcome(w, *open.Position); out.Code != intents.Indeterminate {
			t.Errorf("%+v", out)
		}
	})
}

// Executors are told once an outcome is durable, of many in one message.
func TestAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := routertest.New(t, routertest.Options{})
		task := started(w, catalog.Once)
		var ids []string
		for n := range 3 {
			ids = append(ids, w.Want(task.Call("feed", fmt.Sprintf(`{"n":%d}`, n)), intents.OK).IntentID)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		told := 0
		for _, a := range w.Bus.Recorded() {
			if slices.Contains(ids, a.IntentID) && a.Number == 1 {
				told++
			}
		}
		if told != len(ids) {
			t.Errorf("%d of %d", told, len(ids))
		}
	})
}
