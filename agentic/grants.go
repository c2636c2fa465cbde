package agentic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/clock"
)

// renewals gives fresh grants to the turns that one process works on. A grant goes to one process
// only: from the gateway to the manager that runs the turn, and from that manager to the process
// to which it has delegated.
type renewals struct {
	mu      sync.Mutex            // guards of
	bearers map[*Submitter]bearer // active submitters
}

// bearer is the driver or delegate that a fresh grant is for.
type bearer struct {
	plan, driver string
	stop         context.CancelCauseFunc
	patched      chan struct{} // of the driver of a run: signals that its graph has changed; nil: of others
}

func newRenewals() *renewals { return &renewals{bearers: make(map[*Submitter]bearer)} }

// errStopped ends the work for a plan that was cancelled.
var errStopped = errors.New("stopped")

// haltedError ends the work for a plan that an operator has stopped, and that is closed.
type haltedError struct{ why string }

func (e *haltedError) Error() string { return e.why }
func (e *haltedError) Unwrap() error { return errStopped }

// follow gives a submitter every fresh grant of its turn until stop is called. The context of its
// work ends, with errStopped, when the plan is cancelled.
func (r *renewals) follow(ctx context.Context, t Turn, s *Submitter, patched chan struct{}) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bearers[s] = bearer{t.PlanID, t.Driver, cancel, patched}
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.bearers, s)
	}
}

// take passes a fresh grant to the local submitter that works for its driver; without a grant it
// reports whether there is one.
func (r *renewals) take(_ context.Context, g bus.FreshGrant) bus.FreshGrantReply {
	r.mu.Lock()
	defer r.mu.Unlock()
	var reply bus.FreshGrantReply
	for s, b := range r.bearers {
		if b.plan != g.PlanID || b.driver != g.Driver {
			continue
		}
		if g.Grant != "" {
			s.Refresh(g.Grant)
		}
		switch {
		case g.Why != "":
			b.stop(&haltedError{g.Why})
		case g.StoppedBy != "":
			b.stop(fmt.Errorf("%w by %s", errStopped, g.StoppedBy))
		}
		reply.Accepted = reply.Accepted || !g.Patched || b.patched != nil
		if g.Patched && b.patched != nil {
			select {
			case b.patched <- struct{}{}:
			default: // already signalled
			}
		}
	}
	return reply
}

// driverOf returns the driver of a plan that runs here.
func (r *renewals) driverOf(plan string) (driver string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.bearers {
		if b.plan == plan {
			return b.driver, true
		}
	}
	return "", false
}

// Times for forwarding a fresh grant: how long to wait for an answer, and the pause before
// retrying with a process that has not begun yet.
const (
	passTime  = 3 * time.Second
	passRetry = time.Second

	stopTime = 5 * time.Second // that a process may take to end its work for a cancelled plan
)

// helped delegates to one process of a role. Meanwhile fresh grants of the turn are forwarded to
// it; sent is the grant that the request carries. on receives the progress of the process. If
// the plan is cancelled, the process ends its work, and its reply has what its model used. The error
// is errGone if the process no longer works on it and has not answered: it has died, or its answer
// was lost.
func (r *Run) helped(ctx context.Context, role, instance string, wait time.Duration, sent string, in, out any, on func(progress)) error {
	working, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unwatched := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errStopped) {
			r.stopProcess(working, role, instance)
		}
		end(context.Cause(ctx))
	})
	defer unwatched()
	var beside sync.WaitGroup
	beside.Go(func() { r.passOn(working, role, instance, sent) })
	beside.Go(func() {
		if r.watchProcess(working, role, instance) {
			end(errGone)
		}
	})
	defer beside.Wait()
	defer end(nil)
	err := delegateTo(working, following(r.cfg.Bus, on), bus.AgentInstance(role, instance), wait, in, out)
	if err != nil && errors.Is(context.Cause(working), errGone) {
		return errGone
	}
	return err
}

// errGone means that the process that worked for a plan is gone, or works on something else.
var errGone = errors.New("the process that worked on it is gone")

// Limits for watching a working process: the interval of the checks, so that the loss of a process
// is noticed within ten seconds, how often in a row it may be
// missing or deny the work, as when its answer is in transit, and how often it may be silent,
// like a process suspended for a while.
const (
	askEvery   = 3 * time.Second
	mostAbsent = 2
	mostSilent = 20
)

// watchProcess checks repeatedly whether a process works for this driver, until it does not or
// ctx ends.
func (r *Run) watchProcess(ctx context.Context, role, instance string) bool {
	absent, silent := 0, 0
	for absent < mostAbsent && silent < mostSilent {
		select {
		case <-r.cfg.after(askEvery):
		case <-ctx.Done():
			return false
		}
		var reply bus.FreshGrantReply
		err := delegate(ctx, r.cfg.Bus, bus.Grant(role, instance), passTime, bus.FreshGrant{PlanID: r.turn.PlanID, Driver: r.driver}, &reply)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && reply.Accepted:
			absent, silent = 0, 0
		case err == nil || errors.Is(err, bus.ErrNoResponders):
			absent++
		default:
			silent++
		}
	}
	return true
}

// stopProcess has a process end its work, and waits until it has replied.
func (r *Run) stopProcess(ctx context.Context, role, instance string) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	for ctx.Err() == nil {
		var reply bus.FreshGrantReply
		err := delegate(ctx, r.cfg.Bus, bus.Grant(role, instance), passTime, bus.FreshGrant{PlanID: r.turn.PlanID, Driver: r.driver, StoppedBy: "its driver"}, &reply)
		if err == nil && reply.Accepted {
			break
		}
		_ = clock.Sleep(ctx, passRetry) // it has not begun yet
	}
	<-ctx.Done()
}

// passOn forwards every grant that is fresher than the current one of a process, until ctx ends.
func (r *Run) passOn(ctx context.Context, role, instance, has string) {
	for ctx.Err() == nil {
		grant, changed := r.submitter.freshest(r.turn)
		if grant == has {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		var reply bus.FreshGrantReply
		err := delegate(ctx, r.cfg.Bus, bus.Grant(role, instance), passTime, bus.FreshGrant{PlanID: r.turn.PlanID, Driver: r.driver, Grant: grant}, &reply)
		if err == nil && reply.Accepted {
			has = grant
			continue
		}
		_ = clock.Sleep(ctx, passRetry) // the loop looks whether ctx has ended
	}
}
