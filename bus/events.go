package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/ratelimit"
)

// Limits of the stream of events. An hour bridges a deployment and the restart of a machine; a
// reader that is away for longer reads the documents. The second limit applies to each tenant and
// kind, the third bounds the memory of the whole stream. At that bound JetStream would drop the
// oldest events of any tenant, so the publisher first deletes events of the tenant and kind with
// the most bytes.
const (
	EventsAge        = time.Hour
	eventsPerSubject = 10_000
	eventsBytes      = 256 << 20
)

// maxQueuedEvents bounds the queue while the stream is slow or gone.
const maxQueuedEvents = 8192

// publishRetry is the pause after the stream refused an event.
const publishRetry = time.Second

// Event is an event for other systems.
type Event struct {
	Tenant, Kind string
	ID           string // increases
	At           time.Time
	Body         []byte
}

// Publisher publishes events to their stream, in order and each once. Its caller never waits:
// events that the stream does not accept in time are dropped.
type Publisher struct {
	js    jetstream.JetStream
	conn  Conn
	now   func() time.Time
	log   *slog.Logger
	queue chan queuedEvent
	room  *ratelimit.Places // of the queue, which tenants share
	full  bool              // owned by the goroutine that calls Publish

	bytes, since int // bound of the stream, and bytes published since its size was last checked
}

// queuedEvent is an event with the function that releases its place in the queue.
type queuedEvent struct {
	Event
	leave func()
}

// NewPublisher publishes over the connection of the role publisher.
func NewPublisher(c Conn, now func() time.Time, log *slog.Logger) (*Publisher, error) {
	of, err := ours(c)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.NewWithAPIPrefix(of.nc, EventsAPI)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	return &Publisher{js: js, conn: c, now: now, log: log, queue: make(chan queuedEvent, maxQueuedEvents), room: ratelimit.NewPlaces(maxQueuedEvents), bytes: eventsBytes}, nil
}

// Publish queues events that are not too old. It is called by one goroutine.
func (p *Publisher) Publish(events []Event) {
	for _, e := range events {
		if p.old(e) {
			continue
		}
		leave, ok := p.room.Take(e.Tenant, "")
		switch {
		case ok:
			p.queue <- queuedEvent{e, leave}
			p.full = p.full && p.room.Used() > maxQueuedEvents/2
		case !p.full:
			p.log.Warn("the stream of events is slow or takes none: some events are left out, first of the tenants that have most", slog.String("tenant", e.Tenant), slog.String("first", e.ID))
			p.full = true
		}
	}
}

func (p *Publisher) old(e Event) bool { return p.now().Sub(e.At) >= EventsAge }

// Run publishes until ctx ends. Events left in its queue are sent again by the next process: a
// recorder begins before the last records that it has written.
func (p *Publisher) Run(ctx context.Context) error {
	last, at := p.open(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-p.queue:
			// Another log in the same stream begins with small ids at a later time.
			if e.ID > last || e.At.After(at) {
				p.publish(ctx, e.Event)
			}
			e.leave()
		}
	}
}

// open creates the stream if it is missing, and returns the last event in it.
func (p *Publisher) open(ctx context.Context) (last string, at time.Time) {
	p.patiently(ctx, func() error {
		s, err := p.js.CreateStream(ctx, jetstream.StreamConfig{
			Name:              EventsStream,
			Description:       "events for other systems",
			Subjects:          []string{eventsPrefix + ">"},
			Storage:           jetstream.MemoryStorage,
			MaxAge:            EventsAge,
			MaxMsgsPerSubject: eventsPerSubject,
			MaxBytes:          int64(p.bytes),
			Discard:           jetstream.DiscardOld,
			Replicas:          Replicas(p.conn),
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = p.js.Stream(ctx, EventsStream)
		}
		if err != nil {
			return err
		}
		m, err := s.GetLastMsgForSubject(ctx, eventsPrefix+">")
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err == nil {
			last, at = m.Header.Get(jetstream.MsgIDHeader), m.Time
		}
		return err
	})
	return last, at
}

func (p *Publisher) publish(ctx context.Context, e Event) {
	m := &nats.Msg{Subject: eventsPrefix + token(e.Tenant) + "." + e.Kind, Data: e.Body}
	p.patiently(ctx, func() error {
		if p.old(e) {
			return nil
		}
		_, err := p.js.PublishMsg(ctx, m, jetstream.WithMsgID(e.ID))
		return err
	})
	if p.since += len(m.Data); p.since >= p.bytes/64 {
		p.since = 0
		if err := p.share(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "the stream of events has no shares: its oldest events go first", slog.String("error", err.Error()))
		}
	}
}

// share keeps the stream below its bound, where tenants would lose events to each other: while
// less than an eighth is free, the tenant and kind with the most bytes loses the older half of
// them.
func (p *Publisher) share(ctx context.Context) error {
	return sharedStream{p.js, EventsStream, eventsPrefix, 2}.below(ctx, uint64(p.bytes-p.bytes/8)) //nolint:gosec // G115: a bound of ours, positive
}

// patiently retries until try succeeds or ctx ends.
func (p *Publisher) patiently(ctx context.Context, try func() error) {
	for told := false; ; told = true {
		err := try()
		if err == nil || ctx.Err() != nil {
			return
		}
		if !told {
			p.log.WarnContext(ctx, "events wait for their stream", slog.String("error", err.Error()))
		}
		_ = clock.Sleep(ctx, publishRetry) // try notices the end of ctx
	}
}
