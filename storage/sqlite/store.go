package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/storage"
)

// ErrClosed is the error of every call after Close that needs the file.
var ErrClosed = errors.New("sqlite: closed")

const (
	// groupLimit bounds a group, and with it how long one sync can take.
	groupLimit = 1024
	// gatherLimit bounds the wait for callers that are about to come back.
	gatherLimit = 300 * time.Microsecond
)

// store is a database with two goroutines: one collects the requests that wait and
// writes them together, so that all pay for one sync; the other keeps the write-ahead
// log short.
type store[T waiting] struct {
	db    *database
	ckpt  *checkpointer
	queue chan T
	stop  chan struct{} // closed first: no more requests are accepted
	done  chan struct{} // closed when the writer has ended

	failing string // begins the error of a store that has failed
	onFatal func(error)
	onWrite func(requests int, took time.Duration) // nil: nobody asks
	failed  atomic.Pointer[error]                  // the first failure; then no call succeeds

	background context.CancelFunc
	running    sync.WaitGroup
	closing    sync.Once
	closeErr   error
}

// waiting is a request that a caller waits for.
type waiting interface{ reply() chan error }

// answer is where the writer answers a request. It is buffered: the writer never
// waits for a caller that went away.
type answer chan error

func newAnswer() answer { return make(chan error, 1) }

func (a answer) reply() chan error { return a }

// start the goroutines. write is called by one of them, and answers every request.
func (s *store[T]) start(ctx context.Context, write func(context.Context, []T)) {
	ctx, s.background = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // G118: Close calls it
	s.queue, s.stop, s.done = make(chan T, groupLimit), make(chan struct{}), make(chan struct{})
	s.ckpt = &checkpointer{conn: s.db.ckpt, failed: s.fail}
	uncancelled := context.WithoutCancel(ctx)
	s.running.Go(func() { s.run(func(batch []T) { write(uncancelled, batch) }) })
	s.running.Go(func() { s.ckpt.run(ctx) })
}

// Close writes what is queued, checkpoints, and closes the file. Calls that come
// later get ErrClosed. It may be called twice.
func (s *store[T]) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		<-s.done
		s.background()
		s.running.Wait()
		s.closeErr = s.db.close()
	})
	return s.closeErr
}

// fail makes every later call fail and tells the owner once.
func (s *store[T]) fail(err error) {
	err = fmt.Errorf("%s: %w", s.failing, err)
	if s.failed.CompareAndSwap(nil, &err) && s.onFatal != nil {
		s.onFatal(err)
	}
}

// failure is why no call succeeds any more.
func (s *store[T]) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// writeFailed distinguishes a full disk, after which the file is as before, from a
// failed write or sync, after which it is unknown what a later sync would make durable.
func (s *store[T]) writeFailed(err error) error {
	if isFull(err) {
		return errors.Join(storage.ErrFull, err)
	}
	s.fail(err)
	return s.failure()
}

// do has the writer carry out a request and waits for the answer. Cancelling stops
// the wait, not the write.
func (s *store[T]) do(ctx context.Context, r T) error {
	if err := errors.Join(s.failure(), ctx.Err()); err != nil {
		return err
	}
	select {
	case <-s.stop:
		return ErrClosed
	default:
	}
	select {
	case s.queue <- r:
	case <-s.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.reply():
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
	}
	select {
	case err := <-r.reply(): // answered just before the end
		return err
	default:
		return ErrClosed
	}
}

// closedOr is ErrClosed if the database was closed under a reader.
func (s *store[T]) closedOr(err error) error {
	select {
	case <-s.stop:
		return ErrClosed
	default:
		return err
	}
}

// answerAll answers every request of a group with the same error.
func answerAll[T waiting](batch []T, err error) {
	for _, r := range batch {
		r.reply() <- err
	}
}

// run writes groups until stop is closed and the queue is empty.
func (s *store[T]) run(write func([]T)) {
	defer close(s.done)
	var batch []T
	var took time.Duration
	for {
		last := len(batch)
		clear(batch) // so that answered requests are not kept alive
		batch = batch[:0]
		select {
		case r := <-s.queue:
			batch = append(batch, r)
		case <-s.stop:
			select {
			case r := <-s.queue:
				batch = append(batch, r)
			default:
				return
			}
		}
		batch = s.gather(batch, last, min(took/10, gatherLimit))
		start := time.Now()
		write(batch)
		took = time.Since(start)
		if s.onWrite != nil {
			s.onWrite(len(batch), took)
		}
	}
}

// gather takes what waits and then waits briefly until as many are back as the
// last group had. Without it callers that write in a loop fall into two halves
// that wait for each other's sync. It yields instead of arming a timer: an idle
// scheduler rounds a timer up to a millisecond, and what is waited for is
// runnable goroutines.
func (s *store[T]) gather(batch []T, last int, wait time.Duration) []T {
	deadline := time.Now().Add(wait)
	for len(batch) < groupLimit {
		select {
		case r := <-s.queue:
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
