package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/group"
)

// ErrClosed is the error of every call after Close that needs the file.
var ErrClosed = group.ErrClosed

// store is a database with two goroutines: one writes groups of requests; the other keeps
// the write-ahead log short.
type store[T group.Waiting] struct {
	group.Queue[T]
	db   *database
	ckpt *checkpointer

	life       context.Context //nolint:containedctx // of the goroutines, until Close
	background context.CancelFunc
	running    sync.WaitGroup
	closing    sync.Once
	closeErr   error
}

// start the goroutines. write is called by one of them, and answers every request.
func (s *store[T]) start(ctx context.Context, write func(context.Context, []T)) {
	ctx, s.background = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // G118: Close calls it
	s.life = ctx
	s.Open()
	s.ckpt = &checkpointer{conn: s.db.ckpt, failed: s.Fail}
	uncancelled := context.WithoutCancel(ctx)
	s.running.Go(func() { s.Run(func(batch []T) { write(uncancelled, batch) }) })
	s.running.Go(func() { s.ckpt.run(ctx) })
}

// Close writes what is queued, checkpoints, and closes the file. Calls that come
// later get ErrClosed. It may be called twice.
func (s *store[T]) Close() error {
	s.closing.Do(func() {
		s.Stop()
		s.background()
		s.running.Wait()
		s.closeErr = s.db.close()
	})
	return s.closeErr
}

// LogBytes is the length of the write-ahead log.
func (s *store[T]) LogBytes() int64 {
	info, err := os.Stat(s.db.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// writeFailed distinguishes a full disk, after which the file is as before, from a
// failed write or sync, after which it is unknown what a later sync would make durable.
func (s *store[T]) writeFailed(err error) error {
	if isFull(err) {
		return errors.Join(storage.ErrFull, err)
	}
	s.Fail(err)
	return s.Failure()
}

// closedOr is ErrClosed if the database was closed under a reader.
func (s *store[T]) closedOr(err error) error {
	select {
	case <-s.Stopping():
		return ErrClosed
	default:
		return err
	}
}
