package agentic

import (
	"context"
	"errors"
	"sync"
	"time"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/clock"
)

// renewals gives fresh grants to the turns that one process works on. A grant goes
// to one process only: from the gateway to the manager that drives the turn, and
// from that manager to the process it has delegated to.
type renewals struct {
	mu sync.Mutex         // guards of
	of map[*Sealer]bearer // the sealers that work
}

// bearer is the driver or delegate that a fresh grant is for.
type bearer struct {
	plan, driver string
	patched      chan struct{} // of the driver of a run: its graph is another; nil: of others
}

func newRenewals() *renewals { return &renewals{of: make(map[*Sealer]bearer)} }

// follow gives a sealer every fresh grant of its turn until stop is called.
func (r *renewals) follow(t Turn, s *Sealer, patched chan struct{}) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[s] = bearer{t.PlanID, t.Driver, patched}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.of, s)
	}
}

// take hands a fresh grant to whoever works for its driver here, or says whether somebody does.
func (r *renewals) take(_ context.Context, g bus.FreshGrant) bus.FreshGrantReply {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reply bus.FreshGrantReply
	for s, b := range r.of {
		if b.plan != g.PlanID || b.driver != g.Driver {
			continue
		}
		if g.Grant != "" {
			s.Refresh(g.Grant)
		}
		reply.Taken = reply.Taken || !g.Patched || b.patched != nil
		if g.Patched && b.patched != nil {
			select {
			case b.patched <- struct{}{}:
			default: // it is told already
			}
		}
	}
	return reply
}

// driverOf a plan, if it is driven here.
func (r *renewals) driverOf(plan string) (driver string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.of {
		if b.plan == plan {
			return b.driver, true
		}
	}
	return "", false
}

// Times of passing a fresh grant on: how long to wait for an answer, and how long
// until it is tried again with a process that has not begun yet.
const (
	passTime  = 5 * time.Second
	passAgain = time.Second
)

// helped delegates to one process of a role. While that works, fresh grants of
// the turn are passed on to it; sent is the one that the request carries. on gets what
// the process says meanwhile. The error is errGone if the process does not work on it any more
// and has not answered: it has died, or its answer was lost.
func (d *drive) helped(ctx context.Context, role, instance string, wait time.Duration, sent string, in, out any, on func(progress)) error {
	working, end := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { d.passOn(working, role, instance, sent) })
	beside.Go(func() {
		if d.gone(working, role, instance) {
			end(errGone)
		}
	})
	defer beside.Wait()
	defer end(nil)
	err := delegateTo(working, following(d.cfg.Bus, on), bus.AgentInstance(role, instance), wait, in, out)
	if err != nil && errors.Is(context.Cause(working), errGone) {
		return errGone
	}
	return err
}

// errGone says that the process that worked for a plan is not there any more, or works on something else.
var errGone = errors.New("the process that worked on it is gone")

// Looking after a process that works: how often it is asked whether it does, how often in a row it may be
// missing or say that it does not, as when its answer is on its way, and how often it may be silent, as one that is
// held for a while.
const (
	askEvery   = 5 * time.Second
	mostAbsent = 2
	mostSilent = 12
)

// gone asks a process again and again whether it works for this driver, until it does not or ctx ends.
func (d *drive) gone(ctx context.Context, role, instance string) bool {
	absent, silent := 0, 0
	for absent < mostAbsent && silent < mostSilent {
		select {
		case <-d.cfg.after(askEvery):
		case <-ctx.Done():
			return false
		}
		var reply bus.FreshGrantReply
		err := delegate(ctx, d.cfg.Bus, bus.Grant(role, instance), passTime, bus.FreshGrant{PlanID: d.turn.PlanID, Driver: d.driver}, &reply)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && reply.Taken:
			absent, silent = 0, 0
		case err == nil || errors.Is(err, bus.ErrNoResponders):
			absent++
		default:
			silent++
		}
	}
	return true
}

// passOn gives a process every grant that is fresher than the one it has, until
// ctx ends.
func (d *drive) passOn(ctx context.Context, role, instance, has string) {
	for ctx.Err() == nil {
		grant, changed := d.sealer.freshest(d.turn)
		if grant == has {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		var reply bus.FreshGrantReply
		err := delegate(ctx, d.cfg.Bus, bus.Grant(role, instance), passTime, bus.FreshGrant{PlanID: d.turn.PlanID, Driver: d.driver, Grant: grant}, &reply)
		if err == nil && reply.Taken {
			has = grant
			continue
		}
		_ = clock.Sleep(ctx, passAgain) // the loop looks whether ctx has ended
	}
}
