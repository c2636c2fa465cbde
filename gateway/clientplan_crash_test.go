package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// TestClientRestart: after a restart the earlier plan is cancelled, and a repeated request is
// another call: the call whose answer was lost is in the record.
func TestClientRestart(t *testing.T) {
	w := newClientWorld(t)
	w.called("1", "bank.rates", `{}`, intents.OK)
	usual := w.Bus.Executor("skill.call")
	reached, die := make(chan struct{}), make(chan struct{})
	w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		close(reached)
		<-die
		return intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "killed"}
	})
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		_, _ = w.call("2", "bank.pay", `{}`) // nobody receives the answer
	}()
	<-reached
	dead := w
	close(die)
	<-lost
	w.Bus.On("skill.call", usual)
	w = dead.restart()
	w.soon(catalog.PlanFailed)
	w.called("2", "bank.pay", `{}`, intents.OK)
	w.soon(catalog.PlanFailed, catalog.PlanExecuting)
	w.calls(3)
}

// TestClientDiesAnywhere: whichever write is the last one before all processes die, after the
// restart the plan of the session ends, nothing is called twice, and a client starts over.
func TestClientDiesAnywhere(t *testing.T) {
	died := 0
	for last := int64(1); ; last++ {
		w := newClientWorld(t)
		w.stop()
		next := w.Reopen()
		j := &mortal{Journal: next.Journal, last: last, reached: make(chan struct{}), killed: make(chan struct{})}
		w = startOn(next, j)
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = w.call("1", "bank.pay", `{}`)
			_, _ = w.call("2", "bank.rates", `{}`)
			w.gateway.endClient(t.Context(), w.actor, "mcp1")
		}()
		select {
		case <-j.reached:
			died++
		case <-over:
		}
		close(j.killed)
		w.stop()
		<-over
		pays := len(w.Bus.Calls("skill.call"))
		w = start(w.Reopen())
		until(t, fmt.Sprintf("after write %d the plans end", last), func() bool {
			return !slices.ContainsFunc(w.plans(), func(s catalog.PlanStatus) bool { return s != catalog.PlanComplete && s != catalog.PlanFailed })
		})
		w.calls(pays)
		w.called("1", "bank.pay", `{}`, intents.OK)
		w.calls(pays + 1)
		w.stop()
		if died < int(last) {
			if pays != 2 {
				t.Errorf("%d calls where nothing died", pays)
			}
			break
		}
	}
	if died < 8 { // open, claim, step, two calls with their outcomes, end
		t.Errorf("died after %d writes only", died)
	}
}

// mortal is a journal whose process dies right after a write, before it is acknowledged.
type mortal struct {
	storage.Journal
	last            int64
	wrote           atomic.Int64
	reached, killed chan struct{}
}

func (m *mortal) dead() error {
	n := m.wrote.Add(1)
	if n == m.last {
		close(m.reached)
	}
	if n < m.last {
		return nil
	}
	<-m.killed
	return errors.New("the process is dead")
}

func (m *mortal) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if m.wrote.Load() >= m.last {
		<-m.killed
		return storage.Result{}, errors.New("the process is dead")
	}
	r, err := m.Journal.Commit(ctx, c)
	return r, errors.Join(err, m.dead())
}

func (m *mortal) Finish(ctx context.Context, of int64, attempt int, outcome storage.Record, writes []storage.Subject) (int64, error) {
	if m.wrote.Load() >= m.last {
		<-m.killed
		return 0, errors.New("the process is dead")
	}
	at, err := m.Journal.Finish(ctx, of, attempt, outcome, writes)
	return at, errors.Join(err, m.dead())
}
