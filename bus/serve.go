package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/tracing"
)

// defaultWorkers is the number of requests that an endpoint handles at once unless its service
// sets another.
const defaultWorkers = 64

// Serve implements Conn. Handlers get a context that outlives ctx (clock.Lasting), so that a
// request that has begun can end; requests beyond Workers wait.
func (c *conn) Serve(ctx context.Context, s Service, ready chan<- struct{}) error {
	var running sync.WaitGroup
	var svc micro.Service
	err := c.permitted(ctx, func() (err error) {
		svc, err = c.addService(clock.Lasting(ctx), s, &running)
		return err
	})
	if err != nil {
		if svc != nil {
			_ = svc.Stop() // the error above is returned
		}
		return fmt.Errorf("bus: serve %s: %w", s.Name, Plain(err))
	}
	if ready != nil {
		close(ready)
	}
	select {
	case <-ctx.Done():
		err = c.stopService(svc)
	case <-c.closed:
		err = nats.ErrConnectionClosed
	}
	running.Wait()
	if err != nil {
		return fmt.Errorf("bus: serve %s: %w", s.Name, Plain(err))
	}
	return nil
}

// instanceKey is the metadata of a service that names its process.
const instanceKey = "instance"

func (c *conn) addService(ctx context.Context, s Service, running *sync.WaitGroup) (micro.Service, error) {
	svc, err := micro.AddService(c.nc, micro.Config{
		Name: s.Name, Version: s.Version, Description: s.Description, QueueGroup: s.Queue,
		Metadata: map[string]string{instanceKey: c.instance},
	})
	if err != nil {
		return nil, err
	}
	workers := cmp.Or(s.Workers, defaultWorkers)
	talkers := map[string]Talker{}
	maps.Copy(talkers, s.Talkers)
	for subject, h := range s.Endpoints {
		talkers[subject] = func(ctx context.Context, data []byte, _ func([]byte)) []byte { return h(ctx, data) }
	}
	for _, subject := range slices.Sorted(maps.Keys(talkers)) {
		if err := addEndpoint(svc, subject, pooled(ctx, talkers[subject], workers, false, running)); err != nil {
			return svc, err
		}
	}
	own := cmp.Or(c.instance, nuid.Next())
	for subject, h := range s.Each {
		h := pooled(ctx, func(ctx context.Context, data []byte, _ func([]byte)) []byte { return h(ctx, data) }, workers, true, running)
		if err := addEndpoint(svc, subject, h, micro.WithEndpointQueueGroup(own)); err != nil {
			return svc, err
		}
	}
	return svc, nil
}

func addEndpoint(svc micro.Service, subject string, h micro.Handler, options ...micro.EndpointOpt) error {
	name := strings.ReplaceAll(subject, ".", "-") // dots are not allowed
	return svc.AddEndpoint(name, h, append(options, micro.WithEndpointSubject(subject))...)
}

// pooled runs a handler on at most n requests at once. It blocks the subscription while all are
// busy, so that further requests stay in its buffer. It ignores a message without a reply
// subject: it may be the answer to a request whose reply subject was this endpoint's. A silent
// handler that returns nil sends no reply.
func pooled(ctx context.Context, h Talker, n int, silent bool, running *sync.WaitGroup) micro.Handler {
	slots := make(chan struct{}, n)
	return micro.HandlerFunc(func(r micro.Request) {
		if r.Reply() == "" {
			return
		}
		slots <- struct{}{}
		running.Add(1)
		go func() {
			defer func() { <-slots; running.Done() }()
			ctx := tracing.Under(ctx, r.Headers().Get(parentHeader))
			if reply := h(ctx, r.Data(), sayer(r)); reply != nil || !silent {
				_ = r.Respond(reply) // fails only where the connection is lost
			}
		}()
	})
}

// stopService ends a service's subscriptions and waits until every request that
// the server had sent by then has reached its handler.
func (c *conn) stopService(svc micro.Service) error {
	if err := svc.Stop(); err != nil {
		return err
	}
	if err := c.nc.FlushTimeout(drainTimeout); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	handed := make(chan struct{})
	if err := c.nc.Barrier(func() { close(handed) }); err != nil {
		return nil //nolint:nilerr // the connection is closed: nothing can come any more
	}
	select {
	case <-handed:
	case <-c.closed:
	}
	return nil
}
