package sqlite

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// ErrClosed is the error of every call after Close that needs the file.
var ErrClosed = errors.New("sqlite: closed")

const (
	// groupLimit bounds a group, and with it how long one sync can take.
	groupLimit = 1024
	// gatherLimit bounds the wait for callers that are about to come back.
	gatherLimit = 300 * time.Microsecond
)

// group is the one writer of a database: it collects what waits and has it
// written together, so that all pay for one sync.
type group[T any] struct {
	queue chan T
	stop  chan struct{} // closed first: nothing more is taken in
	done  chan struct{} // closed when the goroutine has ended
	write func([]T)     // called by one goroutine; answers every element
}

func newGroup[T any](write func([]T)) *group[T] {
	return &group[T]{
		queue: make(chan T, groupLimit),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
		write: write,
	}
}

// submit queues a request. With an error it was not queued and never will be.
func (g *group[T]) submit(ctx context.Context, r T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-g.stop:
		return ErrClosed
	default:
	}
	select {
	case g.queue <- r:
		return nil
	case <-g.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run writes groups until stop is closed and the queue is empty.
func (g *group[T]) run() {
	defer close(g.done)
	var batch []T
	var took time.Duration
	for {
		last := len(batch)
		clear(batch) // so that answered requests are not kept alive
		batch = batch[:0]
		select {
		case r := <-g.queue:
			batch = append(batch, r)
		case <-g.stop:
			select {
			case r := <-g.queue:
				batch = append(batch, r)
			default:
				return
			}
		}
		batch = g.gather(batch, last, min(took/10, gatherLimit))
		start := time.Now()
		g.write(batch)
		took = time.Since(start)
	}
}

// gather takes what waits and then waits briefly until as many are back as the
// last group had. Without it callers that write in a loop fall into two halves
// that wait for each other's sync. It yields instead of arming a timer: an idle
// scheduler rounds a timer up to a millisecond, and what is waited for is
// runnable goroutines.
func (g *group[T]) gather(batch []T, last int, wait time.Duration) []T {
	deadline := time.Now().Add(wait)
	for len(batch) < groupLimit {
		select {
		case r := <-g.queue:
			batch = append(batch, r)
			continue
		default:
		}
		if len(batch) >= last || !time.Now().Before(deadline) {
			break
		}
		runtime.Gosched()
	}
	return batch
}

// close stops the goroutine after everything queued was written.
func (g *group[T]) close() {
	close(g.stop)
	<-g.done
}

// await waits for an answer. Cancelling stops the wait, not the write.
func await[A any](ctx context.Context, answer <-chan A, done <-chan struct{}) (A, error) {
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	case <-done:
		select {
		case a := <-answer: // answered just before the end
			return a, nil
		default:
			var none A
			return none, ErrClosed
		}
	}
}
