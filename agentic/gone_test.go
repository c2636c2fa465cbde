package agentic

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
)

// dying is a model in whose request its process dies.
type dying struct {
	die  func()
	over context.Context
}

func (dying) Name() string { return "test:dying" }

func (m dying) Respond(context.Context, model.Request, func(model.Event)) (*model.Response, error) {
	m.die()
	<-m.over.Done()
	return nil, m.over.Err()
}

// TestTaskIsGone: a step whose process has died is opened anew as soon as that is seen, by another process, and its
// plan ends as any other.
func TestTaskIsGone(t *testing.T) {
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
				return nil // the step is known to be without its process: nobody asks for the others
			}
		default:
		}
		return dead
	}
	c.serve(natsserver.Manager, ignoring(NewManager(mgr).Serve))
	handOut(c)
	frames := shown(c)
	if a := dataOf[bus.AnswerData](t, frames[len(frames)-2]); a.Response != "There are two." {
		t.Errorf("answer %+v", a)
	}
	if got := closed(c); got.Status != string(catalog.PlanComplete) || got.Epoch != 2 {
		t.Errorf("%+v", got)
	}
	if n := len(c.of("step")); n != 2 {
		t.Errorf("%d tasks were opened", n)
	}
	for _, o := range c.of("step.finish") {
		if o.Role != intents.RoleTask {
			t.Errorf("the %s says how a task ended that it has not heard of", o.Role)
		}
	}
}

// TestGone: a process is gone when it is not there, or says twice that it does not work for the plan. One that is
// silent may be held, for a minute.
func TestGone(t *testing.T) {
	yes, no := `{"taken":true}`, `{"taken":false}`
	silent := errors.New("no answer in time")
	for name, x := range map[string]struct {
		answers []any // in turn; the last one stays
		asked   int
	}{
		"not there":           {[]any{bus.ErrNoResponders}, mostAbsent},
		"its answer is lost":  {[]any{yes, no}, 1 + mostAbsent},
		"a moment not there":  {[]any{bus.ErrNoResponders, yes, no, yes, no}, 4 + mostAbsent},
		"silent for long":     {[]any{yes, silent}, 1 + mostSilent},
		"silent for a moment": {[]any{silent, silent, yes, no}, 3 + mostAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &answering{answers: x.answers}
			d := &drive{cfg: Config{Bus: conn, After: func(time.Duration) <-chan time.Time { return time.After(0) }}}
			if !d.gone(t.Context(), "task", "i") || conn.asked != x.asked {
				t.Errorf("asked %d times, want %d", conn.asked, x.asked)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if (&drive{cfg: Config{}}).gone(ctx, "task", "i") {
		t.Error("gone, although nobody asks any more")
	}
}

// answering is a Conn that gives one answer after the other.
type answering struct {
	bus.Conn
	answers []any
	asked   int
}

func (a *answering) Request(context.Context, string, []byte) ([]byte, error) {
	now := a.answers[min(a.asked, len(a.answers)-1)]
	a.asked++
	if err, is := now.(error); is {
		return nil, err
	}
	return []byte(now.(string)), nil
}
