package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Limits of the stream of events. An hour bridges what is put in place anew and a machine
// that starts again; who is away for longer reads the documents. The second bound is one of
// each tenant and kind, so that nobody displaces the events of others; the third bounds
// the memory that all take.
const (
	EventsAge        = time.Hour
	eventsPerSubject = 10_000
	eventsBytes      = 256 << 20
)

// toldAhead is how many events wait for a stream that is slow or gone.
const toldAhead = 8192

// publishAgain is the pause before a stream that took no event is tried again.
const publishAgain = time.Second

// Event is an event as others may hear it.
type Event struct {
	Tenant, Kind string
	ID           string // grows
	At           time.Time
	Body         []byte
}

// Publisher puts events on their stream, in order and each once. Who tells it of them never
// waits: what the stream does not take in time is left out.
type Publisher struct {
	js    jetstream.JetStream
	conn  Conn
	now   func() time.Time
	log   *slog.Logger
	queue chan Event
	full  bool // of the goroutine that tells
}

// NewPublisher publishes over the connection of the role publisher.
func NewPublisher(c Conn, now func() time.Time, log *slog.Logger) (*Publisher, error) {
	of, ok := c.(*conn)
	if !ok {
		return nil, errors.New("bus: events: not a connection of this package")
	}
	js, err := jetstream.NewWithAPIPrefix(of.nc, EventsAPI)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	return &Publisher{js: js, conn: c, now: now, log: log, queue: make(chan Event, toldAhead)}, nil
}

// Tell queues events that are not too old. It is called by one goroutine.
func (p *Publisher) Tell(events []Event) {
	for _, e := range events {
		if p.old(e) {
			continue
		}
		select {
		case p.queue <- e:
			p.full = false
		default:
			if !p.full {
				p.log.Warn("the stream of events takes none: some are left out", slog.String("first", e.ID))
			}
			p.full = true
		}
	}
}

func (p *Publisher) old(e Event) bool { return p.now().Sub(e.At) >= EventsAge }

// Run publishes until ctx ends. What it leaves in its queue the next process is told again:
// a recorder begins before the last records that it has written.
func (p *Publisher) Run(ctx context.Context) error {
	last, at := p.open(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-p.queue:
			// Another log in the same stream begins with small ids, later.
			if e.ID > last || e.At.After(at) {
				p.publish(ctx, e)
			}
		}
	}
}

// open makes the stream where it is missing, and says which event it has last.
func (p *Publisher) open(ctx context.Context) (last string, at time.Time) {
	p.patiently(ctx, func() error {
		s, err := p.js.CreateStream(ctx, jetstream.StreamConfig{
			Name:              EventsStream,
			Description:       "events for other systems",
			Subjects:          []string{eventsPrefix + ">"},
			Storage:           jetstream.MemoryStorage,
			MaxAge:            EventsAge,
			MaxMsgsPerSubject: eventsPerSubject,
			MaxBytes:          eventsBytes,
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
}

// patiently tries again until it works or ctx ends.
func (p *Publisher) patiently(ctx context.Context, try func() error) {
	for told := false; ; told = true {
		err := try()
		if err == nil || ctx.Err() != nil {
			return
		}
		if !told {
			p.log.WarnContext(ctx, "events wait for their stream", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(publishAgain):
		}
	}
}
