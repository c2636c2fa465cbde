package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
)

// hearers admits readers of events and connects them as any client of NATS would.
func hearers(t *testing.T, s *natsserver.Server, names ...string) map[string]*nats.Conn {
	t.Helper()
	out := map[string]*nats.Conn{}
	var in []natsserver.External
	seeds := map[string]string{}
	for _, name := range names {
		seed, public, err := bus.NewNKey()
		if err != nil {
			t.Fatal(err)
		}
		seeds[name] = seed
		in = append(in, natsserver.External{Name: name, NKey: public})
	}
	if err := s.SetExternal(in); err != nil {
		t.Fatal(err)
	}
	for name, seed := range seeds {
		out[name] = dial(t, s, byKey(t, seed), nats.CustomInboxPrefix("_INBOX_hearer_"+name))
	}
	return out
}

// events returns events numbered from one number to another, one a second starting at the given
// time, alternating between two tenants.
func events(from, to int, at time.Time) (out []bus.Event) {
	for i := from; i < to; i++ {
		tenant := []string{"acme", "other.org"}[i%2]
		out = append(out, bus.Event{Tenant: tenant, Kind: "step", ID: fmt.Sprintf("%012d-00", i), At: at, Body: fmt.Appendf(nil, "%s %d", tenant, i)})
	}
	return out
}

// publishing runs a publisher until stop is called.
func publishing(t *testing.T, s *natsserver.Server, now func() time.Time) (p *bus.Publisher, stop func()) {
	t.Helper()
	p, err := bus.NewPublisher(connect(t, s, natsserver.Teller), now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p, run(t, p)
}

func run(t *testing.T, p *bus.Publisher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	return stop
}

// nextMessages returns the next n messages of a reader, each acknowledged.
func nextMessages(t *testing.T, nc *nats.Conn, name, filter string, n int) (out []string) {
	t.Helper()
	js, err := jetstream.NewWithAPIPrefix(nc, bus.EventsAPI)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var c jetstream.Consumer
	for { // until the stream is there
		c, err = js.CreateOrUpdateConsumer(ctx, bus.EventsStream, jetstream.ConsumerConfig{Durable: name, FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy})
		if err == nil {
			break
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	for len(out) < n {
		batch, err := c.Fetch(n-len(out), jetstream.FetchContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		for m := range batch.Messages() {
			if err := m.Ack(); err != nil {
				t.Fatal(err)
			}
			out = append(out, string(m.Data()))
		}
		if err := batch.Error(); err != nil {
			t.Fatalf("after %v: %v", out, err)
		}
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	return out
}

// A reader receives the events of its tenant in order and resumes where it stopped. Events that a
// recorder repeats are not published again, even by another publisher.
func TestEvents(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	at := time.Now()
	p, stop := publishing(t, s, time.Now)
	p.Publish(events(1, 7, at))
	crm := hearers(t, s, "acme_crm", "other~org_crm")
	if d := cmp.Diff([]string{"acme 2", "acme 4"}, nextMessages(t, crm["acme_crm"], "acme_crm", bus.Events("acme"), 2)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"other.org 1", "other.org 3", "other.org 5"}, nextMessages(t, crm["other~org_crm"], "other~org_crm", bus.Events("other.org"), 3)); d != "" {
		t.Error(d)
	}
	stop()
	p, _ = publishing(t, s, time.Now)
	p.Publish(events(3, 10, at))
	if d := cmp.Diff([]string{"acme 6", "acme 8"}, nextMessages(t, crm["acme_crm"], "acme_crm", "writ.events.acme.step", 2)); d != "" {
		t.Error(d)
	}
	// Another log has small positions again; old events are not published again.
	p.Publish(events(2, 3, at.Add(time.Minute)))
	p.Publish(events(20, 21, at.Add(-bus.EventsAge)))
	p.Publish(events(30, 31, at))
	if d := cmp.Diff([]string{"acme 30"}, nextMessages(t, crm["acme_crm"], "acme_crm", bus.Events("acme"), 1)); d != "" {
		t.Error(d) // 2 has the id of an event of minutes ago
	}
}

// A missing stream delays nobody: events wait in a bounded queue and arrive in order.
func TestEventsNeverWait(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	p, err := bus.NewPublisher(connect(t, s, natsserver.Teller), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(events(0, 20_000, time.Now())) // nothing is publishing
	late := bus.Event{Tenant: "late", Kind: "step", ID: "000000020000-00", At: time.Now(), Body: []byte("late")}
	p.Publish([]bus.Event{late}) // has a share
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	readers := hearers(t, s, "acme_crm", "late_crm")
	got := nextMessages(t, readers["acme_crm"], "acme_crm", bus.Events("acme"), 3584)
	if got[0] != "acme 0" || got[3583] != "acme 7166" {
		t.Errorf("%s … %s", got[0], got[3583])
	}
	nextMessages(t, readers["late_crm"], "late_crm", bus.Events("late"), 1)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestEventsHaveShares: a tenant with more bytes of events than the stream holds displaces its own
// events and none of another tenant, whether it has many small events or few large ones.
func TestEventsHaveShares(t *testing.T) {
	for name, greedy := range map[string]struct{ n, size int }{"many": {4000, 250}, "large": {100, 10_000}} {
		t.Run(name, func(t *testing.T) {
			s := startOn(t, "127.0.0.1:0")
			p, err := bus.NewPublisher(connect(t, s, natsserver.Teller), time.Now, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			p.Bound(256 << 10)
			run(t, p)
			of := func(tenant string, from, to, size int) (out []bus.Event) {
				for i := from; i < to; i++ {
					out = append(out, bus.Event{Tenant: tenant, Kind: "step", ID: fmt.Sprintf("%012d-00", i), At: time.Now(), Body: fmt.Appendf(nil, "%s %0*d", tenant, size, i)})
				}
				return out
			}
			const modest = 200 // more events than the large ones of the other, of fewer bytes
			p.Publish(of("modest", 0, modest, 20))
			end := modest + greedy.n
			p.Publish(of("greedy", modest, end, greedy.size)) // a megabyte
			p.Publish(of("last", end, end+1, 20))
			readers := hearers(t, s, "modest_crm", "greedy_crm", "last_crm")
			nextMessages(t, readers["last_crm"], "last_crm", bus.Events("last"), 1) // by now all are published
			nextMessages(t, readers["greedy_crm"], "greedy_crm", bus.Events("greedy"), 5)
			got := nextMessages(t, readers["modest_crm"], "modest_crm", bus.Events("modest"), modest)
			if want := fmt.Sprintf("modest %020d", 0); got[0] != want {
				t.Errorf("the first event of another tenant is %s", got[0])
			}
		})
	}
}

// The server refuses a reader everything of other tenants.
func TestEventsOfOthers(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	p, _ := publishing(t, s, time.Now)
	p.Publish(events(1, 5, time.Now()))
	crm := hearers(t, s, "acme_crm", "other~org_crm", "a_b_crm")
	nextMessages(t, crm["acme_crm"], "acme_crm", bus.Events("acme"), 2)
	nc := crm["other~org_crm"]
	for _, subject := range []string{
		"CONSUMER.CREATE.EVENTS.other~org_crm.writ.events.acme.>", "CONSUMER.CREATE.EVENTS.other~org_crm.writ.events.acme.step",
		"CONSUMER.CREATE.EVENTS.other~org_crm.writ.events.>", "CONSUMER.CREATE.EVENTS.other~org_crm.writ.events.*.step", "CONSUMER.CREATE.EVENTS.other~org_crm.>",
		"CONSUMER.CREATE.EVENTS.other~org_crm", "CONSUMER.CREATE.EVENTS", "CONSUMER.DURABLE.CREATE.EVENTS.other~org_crm",
		"CONSUMER.CREATE.EVENTS.acme_crm.writ.events.other~org.>", "CONSUMER.INFO.EVENTS.acme_crm", "CONSUMER.MSG.NEXT.EVENTS.acme_crm", "CONSUMER.DELETE.EVENTS.acme_crm",
		"STREAM.INFO.EVENTS", "STREAM.MSG.GET.EVENTS", "STREAM.PURGE.EVENTS", "STREAM.DELETE.EVENTS", "STREAM.CREATE.X", "CONSUMER.LIST.EVENTS", "DIRECT.GET.EVENTS", "INFO",
	} {
		for _, prefix := range []string{bus.EventsAPI + ".", "$JS.API."} {
			if err := refused(t, nc, func() error { return nc.Publish(prefix+subject, nil) }); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s%s: %v", prefix, subject, err)
			}
		}
	}
	ask := func(body map[string]any) string {
		t.Helper()
		raw, err := json.Marshal(map[string]any{"stream_name": "EVENTS", "config": body})
		if err != nil {
			t.Fatal(err)
		}
		m, err := nc.Request("writ.jetstream.CONSUMER.CREATE.EVENTS.other~org_crm.writ.events.other~org.>", raw, patience)
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			Error *struct{ Description string }
		}
		if err := json.Unmarshal(m.Data, &a); err != nil {
			t.Fatal(err)
		}
		if a.Error == nil {
			return ""
		}
		return a.Error.Description
	}
	for name, config := range map[string]map[string]any{
		"another filter":       {"durable_name": "other~org_crm", "filter_subject": "writ.events.acme.>"},
		"no filter":            {"durable_name": "other~org_crm"},
		"more filters":         {"durable_name": "other~org_crm", "filter_subjects": []string{"writ.events.acme.>", "writ.events.other~org.>"}},
		"another name":         {"durable_name": "acme_crm", "filter_subject": "writ.events.other~org.>"},
		"events for others":    {"name": "other~org_crm", "filter_subject": "writ.events.other~org.>", "deliver_subject": "writ.events.acme.step"},
		"all events of others": {"name": "other~org_crm", "filter_subject": "writ.events.>"},
	} {
		if ask(config) == "" {
			t.Errorf("%s: a consumer is made", name)
		}
	}
	// A requester chooses where replies go. That gives no access to another reader's consumer and
	// cannot delete it.
	nextMessages(t, nc, "other~org_crm", bus.Events("other.org"), 2)
	for _, reply := range []string{"$JS.ACK.EVENTS.acme_crm.1.2.1.1.1", "writ.jetstream.CONSUMER.DELETE.EVENTS.acme_crm"} {
		if err := nc.PublishRequest("writ.jetstream.CONSUMER.MSG.NEXT.EVENTS.other~org_crm", reply, []byte(`{"batch":1,"no_wait":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Request("writ.jetstream.CONSUMER.INFO.EVENTS.other~org_crm", nil, patience); err != nil {
		t.Fatal(err)
	}
	p.Publish(events(5, 7, time.Now()))
	if d := cmp.Diff([]string{"acme 6"}, nextMessages(t, crm["acme_crm"], "acme_crm", bus.Events("acme"), 1)); d != "" {
		t.Error(d)
	}
	if err := refused(t, crm["a_b_crm"], func() error {
		return crm["a_b_crm"].Publish("writ.jetstream.CONSUMER.CREATE.EVENTS.a_b_crm.writ.events.a.>", nil)
	}); err == nil {
		t.Error("a reader of tenant a_b reads tenant a")
	}
	if err := s.SetExternal([]natsserver.External{{Name: "crm", NKey: "U"}}); err == nil {
		t.Error("a reader of no tenant is let in")
	}
}
