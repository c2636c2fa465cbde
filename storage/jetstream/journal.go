package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/group"
)

// Options of a journal.
type Options struct {
	// Instance names this process in what it writes; no two of a cell ever have the same.
	Instance string
	// Observer is called with every record, first with the stored ones while opening.
	Observer storage.Observer
	// From is the index of the first messages: only later ones are read, and it is the journal's
	// own from now on. Nil: all of them are read.
	From *StreamIndex
	// OnErased is called when keys were erased: parts of records may be gone that were read
	// before. It is called at opening too if there is From, since keys may have been erased since that
	// was made. It must not wait. Nil: not called.
	OnErased func()
	// OnFatal is called once if the stream is not a journal any more: a record is missing or
	// cannot be read. Every later call fails. Nil: not called.
	OnFatal func(error)
	// OnWrite is called with the number of requests written with one message, and the time that it took.
	OnWrite func(requests int, took time.Duration)
	// Admit is called before intents are accepted: an error refuses them with
	// storage.ErrNotReady. Nil: nothing does.
	Admit func() error
	Log   *slog.Logger // nil: slog.Default
}

// Journal is the journal of a cell in one of its processes. What it reads from memory
// may be some milliseconds behind the others; its commits never depend on that. See
// storage.Journal.
type Journal struct {
	group.Queue[*group.Request]
	group.Journal // the goroutine that applies a message changes its state
	options       Options
	js            jetstream.JetStream
	stream        messages

	// What follows is guarded by Mu.

	index  *StreamIndex
	cache  cache
	moved  chan struct{} // closed whenever seq changes
	nonce  string        // of the group that is being written
	stored bool          // that group was read from the stream
	may    func() error  // of a process that leads; nil: it does not

	end     context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
}

var (
	_ storage.Journal = (*Journal)(nil)
	_ storage.Records = (*Journal)(nil)
	_ storage.Eraser  = (*Journal)(nil)
)

// closeTime is how long Close waits for servers that do not answer.
const closeTime = 5 * time.Second

// Open follows the stream, which must exist (Create). It returns when the observer has
// received every record that is stored now (Fresh). Two goroutines run until Close.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Journal, error) {
	if o.Observer == nil {
		o.Observer = func(storage.Entry) {}
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.OnErased == nil {
		o.OnErased = func() {}
	}
	from := o.From
	if from == nil {
		from = NewStreamIndex()
	}
	j := &Journal{options: o, js: js, index: from, moved: make(chan struct{})}
	j.Journal = group.Journal{Calls: &j.Queue, Records: j, State: j.index.state}
	j.Failing, j.OnFatal, j.OnWrite = "journal failed", o.OnFatal, o.OnWrite
	stream, err := open(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.stream = stream
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	j.end = end
	if err := j.stream.keys.follow(background, j.dropCache); err != nil {
		end()
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if o.From != nil {
		o.OnErased()
	}
	j.Queue.Open()
	j.running.Go(func() { j.follow(background) })
	j.running.Go(func() { j.Run(func(batch []*group.Request) { j.write(background, batch) }) })
	if err := errors.Join(j.Fresh(ctx), j.Failure()); err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, j.Close()))
	}
	return j, nil
}

// Close writes what is queued, for as long as the servers answer.
func (j *Journal) Close() error {
	j.closing.Do(func() {
		late := time.AfterFunc(closeTime, j.end)
		j.Stop()
		late.Stop()
		j.end()
		j.running.Wait()
	})
	return nil
}

// Fresh waits until everything that is stored now was read, as reported by the leader of the
// stream. A leader that was just deposed may not know it yet, so no commit may
// depend on this, and none does.
func (j *Journal) Fresh(ctx context.Context) error {
	info, err := patiently(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) { return j.stream.Info(ctx) })
	if err != nil {
		return failed(err)
	}
	return j.reach(ctx, info.State.LastSeq)
}

// reach waits until everything up to a sequence was read.
func (j *Journal) reach(ctx context.Context, seq uint64) error {
	for {
		j.Mu.RLock()
		at, moved := j.index.Seq, j.moved
		j.Mu.RUnlock()
		if err := j.Failure(); at >= seq || err != nil {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
