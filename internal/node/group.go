package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// group owns the goroutines of a node. Services stop in the reverse order of their start,
// so each stops before the services that it depends on.
type group struct {
	ctx    context.Context // ends when the node does; services have contexts of their own
	failed chan error      // the error of the first service that ended by itself

	mu    sync.Mutex // guards stops
	stops []func() error
}

func newGroup(ctx context.Context) *group { return &group{ctx: ctx, failed: make(chan error, 1)} }

// run starts a service that runs until its context ends.
func (g *group) run(name string, fn func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.ctx))
	done := make(chan error, 1)
	go func() {
		err := fn(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		if ctx.Err() == nil { // it ended by itself
			if err == nil {
				err = fmt.Errorf("%s ended", name)
			}
			select {
			case g.failed <- err:
				err = nil // reported once
			default:
			}
		}
		done <- err
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops = append(g.stops, func() error {
		cancel()
		return <-done
	})
}

// serve starts a bus service and waits until it listens.
func (g *group) serve(name string, fn func(context.Context, chan<- struct{}) error) error {
	ready := make(chan struct{})
	g.run(name, func(ctx context.Context) error { return fn(ctx, ready) })
	select {
	case <-ready:
		return nil
	case err := <-g.failed:
		return err
	case <-g.ctx.Done():
		return g.ctx.Err()
	}
}

// http serves HTTP; running requests have five seconds to end.
func (g *group) http(name string, s *http.Server, l net.Listener) {
	g.run(name, func(ctx context.Context) error {
		stopped := make(chan error, 1)
		go func() {
			<-ctx.Done()
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			err := s.Shutdown(grace)
			if errors.Is(err, context.DeadlineExceeded) {
				err = s.Close() // streams do not end by themselves
			}
			stopped <- err
		}()
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return <-stopped
	})
}

// stop ends all services, the last started first.
func (g *group) stop() error {
	g.mu.Lock()
	stops := g.stops
	g.stops = nil
	g.mu.Unlock()
	var errs []error
	for i := len(stops) - 1; i >= 0; i-- {
		if err := stops[i](); err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
