package agentic

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// dying is a model during whose request its process dies.
type dying struct {
	die   func()
	ended context.Context
}

func (dying) Name() string { return "test:dying" }

func (m dying) Respond(context.Context, model.Request, func(model.Event)) (*model.Response, error) {
	m.die()
	<-m.ended.Done()
	return nil, m.ended.Err()
}

// TestTaskProcessLost: a step whose process has died is opened anew by another process as soon as
// the loss is detected, and its plan ends normally.
func TestTaskProcessLost(t *testing.T) {
	c := newCore(t)
	selling(c, serving)
	dead := make(chan time.Time)
	cfg := c.config(natsserver.Task, nil)
	var once sync.Once
	ctx, cancel := context.WithCancel(t.Context())
	other := says(map[string][]any{"seller": {"There are two."}})
	cfg.Model = dying{func() {
		once.Do(func() {
			cfg.Bus.Close()
			layer(c, other, natsserver.Task)
			close(dead)
		})
	}, ctx}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- NewTasks(cfg).Serve(ctx, ready) }()
	<-ready
	t.Cleanup(func() { cancel(); <-ended })
	mgr := c.config(natsserver.Manager, says(nil))
	var asked atomic.Int32 // since the process died
	mgr.After = func(d time.Duration) <-chan time.Time {
		if d != askEvery {
			return time.After(d)
		}
		select {
		case <-dead:
			if asked.Add(1) >= mostAbsent {
				return nil // the step has lost its process: the others are not asked
			}
		default:
		}
		return dead
	}
	c.serve(natsserver.Manager, ignoring(NewManager(mgr).Serve))
	dispatchTurn(c)
	frames := shown(c)
	if a := dataOf[bus.AnswerData](t, frames[len(frames)-2]); a.Response != "There are two." {
		t.Errorf("answer %+v", a)
	}
	if got := closed(c); got.Status != string(catalog.PlanComplete) || got.Epoch != 2 {
		t.Errorf("%+v", got)
	}
	if n := len(c.ofType("step")); n != 2 {
		t.Errorf("%d tasks were opened", n)
	}
	for _, o := range c.ofType("step.finish") {
		if o.Role != intents.RoleTask {
			t.Errorf("the %s says how a task ended that it has not heard of", o.Role)
		}
	}
}

// TestProcessLost: a process is gone when it does not exist, or reports twice that it does not
// work for the plan. A silent process may be suspended, for a minute.
func TestProcessLost(t *testing.T) {
	if noticed := mostAbsent * askEvery; noticed > 8*time.Second {
		t.Errorf("a dead process is noticed after %s: with the rest, the step would not go on within ten seconds", noticed)
	}
	yes, no := `{"taken":true}`, `{"taken":false}`
	silent := errors.New("no answer in time")
	for name, x := range map[string]struct {
		answers []any // in turn; the last one repeats
		calls   int
	}{
		"not there":           {[]any{bus.ErrNoResponders}, mostAbsent},
		"its answer is lost":  {[]any{yes, no}, 1 + mostAbsent},
		"a moment not there":  {[]any{bus.ErrNoResponders, yes, no, yes, no}, 4 + mostAbsent},
		"silent for long":     {[]any{yes, silent}, 1 + mostSilent},
		"silent for a moment": {[]any{silent, silent, yes, no}, 3 + mostAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &answering{answers: x.answers}
			d := &Run{cfg: Config{Bus: conn, After: func(time.Duration) <-chan time.Time { return time.After(0) }}}
			if !d.watchProcess(t.Context(), "task", "i") || conn.calls != x.calls {
				t.Errorf("asked %d times, want %d", conn.calls, x.calls)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if (&Run{cfg: Config{}}).watchProcess(ctx, "task", "i") {
		t.Error("gone, although nobody asks any more")
	}
}

// answering is a Conn that returns one answer after the other.
type answering struct {
	bus.Conn
	answers []any
	calls   int
}

func (a *answering) Request(context.Context, string, []byte) ([]byte, error) {
	now := a.answers[min(a.calls, len(a.answers)-1)]
	a.calls++
	if err, is := now.(error); is {
		return nil, err
	}
	return []byte(now.(string)), nil
}
