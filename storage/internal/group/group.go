// Package group writes in groups: one goroutine collects the requests that wait and writes
// them together, so that all pay for one sync.
package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// ErrClosed is the error of every call after Stop.
var ErrClosed = errors.New("storage: closed")

const (
	// limit bounds a group, and with it how long one sync can take.
	limit = 1024
	// gatherLimit bounds the wait for callers that are about to come back.
	gatherLimit = 300 * time.Microsecond
)

// Waiting is a request that a caller waits for.
type Waiting interface{ Reply() chan error }

// Answer is where the writer answers a request. It is buffered: the writer never
// waits for a caller that went away.
type Answer chan error

// NewAnswer returns an answer that is not given yet.
func NewAnswer() Answer { return make(chan error, 1) }

// Reply implements Waiting.
func (a Answer) Reply() chan error { return a }

// Queue of requests. The zero value is to be filled and then made by Open.
type Queue[T Waiting] struct {
	Failing string // begins the error of one that has failed
	OnFatal func(error)
	OnWrite func(requests int, took time.Duration) // nil: not called

	queue  chan T
	stop   chan struct{} // closed first: no more requests are accepted
	done   chan struct{} // closed when the writer has ended
	failed atomic.Pointer[error]
}

// Open takes requests from now on.
func (q *Queue[T]) Open() {
	q.queue, q.stop, q.done = make(chan T, limit), make(chan struct{}), make(chan struct{})
}

// Stop accepts no more requests, and returns when those that wait are written. It is
// called once, after Run was.
func (q *Queue[T]) Stop() {
	close(q.stop)
	<-q.done
}

// Stopping is closed when no more requests are accepted.
func (q *Queue[T]) Stopping() <-chan struct{} { return q.stop }

// Fail makes every later call fail and notifies the owner once.
func (q *Queue[T]) Fail(err error) {
	err = fmt.Errorf("%s: %w", q.Failing, err)
	if q.failed.CompareAndSwap(nil, &err) && q.OnFatal != nil {
		q.OnFatal(err)
	}
}

// Failure is why no call succeeds any more.
func (q *Queue[T]) Failure() error {
	if err := q.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Do has the writer carry out a request and waits for the answer. Cancelling stops
// the wait, not the write.
func (q *Queue[T]) Do(ctx context.Context, r T) error {
	if err := errors.Join(q.Failure(), ctx.Err()); err != nil {
		return err
	}
	select {
	case <-q.stop:
		return ErrClosed
	default:
	}
	select {
	case q.queue <- r:
	case <-q.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.Reply():
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-q.done:
	}
	select {
	case err := <-r.Reply(): // answered just before the end
		return err
	default:
		return ErrClosed
	}
}

// AnswerAll answers every request of a group with the same error.
func AnswerAll[T Waiting](batch []T, err error) {
	for _, r := range batch {
		r.Reply() <- err
	}
}

// Run writes groups until stop is closed and the queue is empty.
func (q *Queue[T]) Run(write func([]T)) {
	defer close(q.done)
	var batch []T
	var took time.Duration
	for {
		last := len(batch)
		clear(batch) // so that answered requests are not kept alive
		batch = batch[:0]
		select {
		case r := <-q.queue:
			batch = append(batch, r)
		case <-q.stop:
			select {
			case r := <-q.queue:
				batch = append(batch, r)
			default:
				return
			}
		}
		batch = q.gather(batch, last, min(took/10, gatherLimit))
		start := time.Now()
		write(batch)
		took = time.Since(start)
		if q.OnWrite != nil {
			q.OnWrite(len(batch), took)
		}
	}
}

// gather takes what waits and then waits briefly until as many are back as the
// last group had. Without it callers that write in a loop fall into two halves
// that wait for each other's sync. It yields instead of arming a timer: an idle
// scheduler rounds a timer up to a millisecond, and what is waited for is
// runnable goroutines.
func (q *Queue[T]) gather(batch []T, last int, wait time.Duration) []T {
	deadline := time.Now().Add(wait)
	for len(batch) < limit {
		select {
		case r := <-q.queue:
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
