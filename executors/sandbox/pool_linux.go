//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"aob.dev/writ/internal/clock"
)

// refillPause is the wait after a worker could not be started, so that a machine without memory or
// uids is not overloaded.
const refillPause = time.Second

// pool has sandboxes of one profile that wait for a script. Each is used once.
type pool struct {
	driver  *linuxDriver
	profile Profile
	size    int
	busy    func() bool // no worker is started meanwhile

	wake   chan struct{} // one pending request to fill up
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	ready []*Instance // guarded by mu; oldest first
}

// newPool starts the goroutine that fills the pool; close ends it. After busy a
// refill has to follow.
func newPool(d *linuxDriver, p Profile, size int, busy func() bool) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	l := &pool{driver: d, profile: p, size: size, busy: busy, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	l.refill()
	go l.run(ctx)
	return l
}

func (l *pool) run(ctx context.Context) {
	defer close(l.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for l.fill(ctx) != nil {
			// Jobs start their own sandbox meanwhile and report the error.
			if clock.Sleep(ctx, refillPause) != nil {
				return
			}
		}
	}
}

// fill starts the workers that are missing, one after the other.
//
// While all processors have runs a worker would make them wait, and cost more than the start that
// it saves: it imports modules that its script may not need.
func (l *pool) fill(ctx context.Context) error {
	for l.short() && !l.busy() {
		inst, err := l.start(ctx)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.ready = append(l.ready, inst)
		l.mu.Unlock()
	}
	return nil
}

// start is a sandbox that waits for a script.
func (l *pool) start(ctx context.Context) (*Instance, error) {
	inst, err := l.driver.Start(l.profile)
	if err != nil {
		return nil, err
	}
	if err := inst.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, inst.Close())
	}
	return inst, nil
}

func (l *pool) short() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ready) < l.size
}

func (l *pool) refill() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns a waiting sandbox built for p, or nil. The caller asks for a refill
// after the run: a start at the same time would slow it.
func (l *pool) take(p Profile) *Instance {
	if p.Limits != l.profile.Limits || p.Room != l.profile.Room {
		return nil
	}
	for {
		l.mu.Lock()
		if len(l.ready) == 0 {
			l.mu.Unlock()
			return nil
		}
		inst := l.ready[0]
		l.ready = l.ready[1:]
		l.mu.Unlock()
		if inst.alive() {
			return inst
		}
		inst.Close() // killed while it waited, as by the kernel for memory
	}
}

// waitFull returns when all workers wait, or with ctx's error.
func (l *pool) waitFull(ctx context.Context) error {
	return clock.Every(ctx, time.Millisecond, func() bool { return !l.short() })
}

// close ends the goroutine and all waiting sandboxes. No take may follow.
func (l *pool) close() error {
	l.cancel()
	<-l.done
	var errs []error
	for _, inst := range l.ready {
		errs = append(errs, inst.Close())
	}
	return errors.Join(errs...)
}
