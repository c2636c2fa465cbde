package router_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// term is one as a test needs it.
type term struct {
	over    atomic.Bool
	settled time.Time
}

// newTerm is a term that begins now; tickets of the one before may be begun for a time.
func newTerm(settles time.Duration) *term { return &term{settled: time.Now().Add(settles)} }

func (x *term) Held() bool { return !x.over.Load() }

func (x *term) Settled() time.Time { return x.settled }

// What an executor knows nothing of may be begun until the tickets of the earlier term have lapsed. Only
// then it ends by its effect.
func TestRecoverOnceSettled(t *testing.T) {
	for effect, want := range map[catalog.Effect]intents.Code{catalog.Pure: intents.Abandoned, catalog.Idempotent: intents.OK, catalog.Once: intents.Indeterminate} {
		bubble(t, func(t *testing.T) {
			t.Helper()
			w, open, stop := succeeding(t, effect, func(*routertest.World) bus.ReportReply { return bus.ReportReply{State: bus.ReportUnknown} })
			defer stop()
			w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
			time.Sleep(10*time.Second - time.Millisecond)
			synctest.Wait()
			if a, err := w.Router.Intent(w.Context(), *open.Position); err != nil || a.Outcome != nil || len(w.Bus.Calls("skill.call")) != 1 {
				t.Errorf("%s: %+v %v", effect, a, err)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if out := outcome(w, *open.Position); out.Code != want {
				t.Errorf("%s: %+v", effect, out)
			}
		})
	}
}

// A report ends an intent at once: it is of the attempt, whoever has asked for that.
func TestReportBeforeSettled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w, open, stop := succeeding(t, catalog.Once, func(w *routertest.World) bus.ReportReply { return kept(w, paid) })
		defer stop()
		time.Sleep(time.Second)
		synctest.Wait()
		if out := outcome(w, *open.Position); out.Status != intents.Done || out.Attempt != 1 {
			t.Errorf("%+v", out)
		}
	})
}

// A router whose term is over begins nothing, and decides nothing: it asks the router that decides.
func TestTermIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		x := newTerm(0)
		w := routertest.New(t, routertest.Options{Term: x})
		task := started(w, catalog.Once)
		began := make(chan struct{})
		w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
			x.over.Store(true)
			close(began)
			return intents.Report{Status: intents.Unstarted, Code: intents.ExecutorTimeout}
		})
		call := w.Sign(task.CallIntent("feed", `{}`))
		answered := make(chan *intents.Answer)
		go func() { a, _ := w.Router.Submit(w.Context(), call); answered <- a }()
		<-began
		time.Sleep(time.Minute)
		synctest.Wait()
		before := w.Journal.Next()
		if n := len(w.Bus.Calls("skill.call")); n != 1 {
			t.Errorf("%d tickets", n)
		}
		if _, err := w.Router.SubmitAndWait(w.Context(), call, 0); intents.CodeOf(err) != intents.DispatchUnavailable {
			t.Errorf("no router decides: %v", err)
		}
		if b := w.Router.SubmitBatch(w.Context(), batchOf(w.Sign(find(w))), 0); b.Code != intents.DispatchUnavailable || w.Journal.Next() != before {
			t.Errorf("%+v", b)
		}
		w.Bus.Fail(func(context.Context) ([]byte, error) { return nil, errors.New("the connection is lost") })
		if _, err := w.Router.SubmitAndWait(w.Context(), call, 0); intents.CodeOf(err) != intents.InFlight {
			t.Errorf("nobody knows whether it was accepted: %v", err)
		}
		w.Bus.Fail(nil)
		x.over.Store(false) // so that the first one ends
		w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
		if a := <-answered; a == nil || a.Code != intents.OK {
			t.Errorf("%+v", a)
		}
	})
}
