package breakers_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/router/breakers"
)

// process is a router's breakers, on a clock that stands until it is moved.
type process struct {
	*breakers.Set
	t       *testing.T
	now     *time.Time
	changes []breakers.Status
}

func start(t *testing.T, now *time.Time, terms breakers.Terms, store durable.Store) *process {
	t.Helper()
	p := &process{t: t, now: now}
	p.Set = breakers.New(terms, store, func() time.Time { return *now }, slog.New(slog.DiscardHandler), func(b breakers.Breaker) { p.changes = append(p.changes, b.Status) })
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// calls asks for leave, and reports the result of the call if there is leave.
func (p *process) calls(failed bool) (sent bool) {
	p.t.Helper()
	probe, refused := p.Ask(p.t.Context(), "acme", "crm")
	if refused == nil {
		p.Report(p.t.Context(), "acme", "crm", probe, failed)
	}
	return refused == nil
}

func (p *process) want(want ...breakers.Breaker) {
	p.t.Helper()
	if d := cmp.Diff(append([]breakers.Breaker{}, want...), p.List("")); d != "" {
		p.t.Error(d)
	}
}

var began = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// TestTransitions: a breaker's statuses by its terms and the clock.
func TestTransitions(t *testing.T) {
	now := began
	p := start(t, &now, breakers.Defaults, nil)
	for range 4 {
		p.calls(true)
	}
	p.want(breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.Closed, Failures: 4})
	p.calls(true)
	open := breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.Open, Failures: 5, Since: began, Next: began.Add(30 * time.Second)}
	p.want(open)
	if sent := p.calls(false); sent || len(p.Open("acme")) != 1 || len(p.Open("other")) != 0 {
		t.Error("an open breaker lets a call through")
	}
	now = began.Add(30 * time.Second)
	open.Status, open.Next = breakers.HalfOpen, time.Time{}
	p.want(open)
	first, _ := p.Ask(t.Context(), "acme", "crm")
	second, _ := p.Ask(t.Context(), "acme", "crm")
	if third, _ := p.Ask(t.Context(), "acme", "crm"); first == 0 || second != first || third != first {
		t.Errorf("probes of the rounds %d, %d, %d", first, second, third)
	}
	if _, refused := p.Ask(t.Context(), "acme", "crm"); refused == nil || refused.Status != breakers.HalfOpen || !refused.Next.Equal(now.Add(90*time.Second)) {
		t.Errorf("a fourth probe: %+v", refused)
	}
	p.Return("acme", "crm", second)
	if again, _ := p.Ask(t.Context(), "acme", "crm"); again != first {
		t.Error("a probe that was given back is gone")
	}
	p.Report(t.Context(), "acme", "crm", 0, false) // sent before it opened
	p.Report(t.Context(), "acme", "crm", first, true)
	p.Report(t.Context(), "acme", "crm", second, false) // of a round that is over
	p.want(breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.Open, Failures: 6, Since: now, Next: now.Add(30 * time.Second)})
	now = now.Add(30 * time.Second)
	silent, _ := p.Ask(t.Context(), "acme", "crm")
	now = now.Add(time.Minute) // nobody has answered
	p.Report(t.Context(), "acme", "crm", silent, false)
	p.want(breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.Open, Failures: 6, Since: now, Next: now.Add(30 * time.Second)})
	now = now.Add(30 * time.Second)
	p.calls(false)
	p.want()
	if d := cmp.Diff([]breakers.Status{"open", "half_open", "open", "half_open", "half_open", "closed"}, p.changes); d != "" {
		t.Error(d)
	}
}

// TestStores: what one process has stored another one reads, which probes an open breaker before it
// closes. A cell's store is read by its next router.
func TestStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (first, second durable.Store){
		"file": func(t *testing.T) (durable.Store, durable.Store) {
			t.Helper()
			f := durable.Document(filepath.Join(t.TempDir(), "breakers.json"))
			return f, f
		},
		"cell": func(t *testing.T) (durable.Store, durable.Store) {
			t.Helper()
			s, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			router := func() durable.Store {
				c, err := s.Connect(t.Context(), natsserver.Router)
				if err == nil {
					err = bus.EnsureCell(t.Context(), c)
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				return bus.NewDocument(c, "breakers")
			}
			return router(), router()
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, other := open(t)
			if doc, err := other.Get(t.Context()); doc != nil || err != nil {
				t.Fatalf("before anything is put: %q, %v", doc, err)
			}
			now := began
			p := start(t, &now, breakers.Defaults, store)
			for range 5 {
				p.calls(true)
			}
			p = start(t, &now, breakers.Defaults, other)
			p.want(breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.Open, Failures: 5, Since: began, Next: began.Add(30 * time.Second)})
			now = now.Add(time.Minute)
			p.Ask(t.Context(), "acme", "crm") // half open, and its router dies

			p = start(t, &now, breakers.Defaults, store)
			for range 3 {
				if probe, refused := p.Ask(t.Context(), "acme", "crm"); refused != nil || probe == 0 {
					t.Errorf("round %d, %+v", probe, refused)
				}
			}
			if p.calls(false) {
				t.Error("more probes than a round has")
			}
			p.Report(t.Context(), "acme", "crm", 1, false)
			p = start(t, &now, breakers.Defaults, other)
			p.want()
			p.calls(true)
			p.Sync(t.Context())
			p = start(t, &now, breakers.Defaults, store)
			p.want(breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.Closed, Failures: 1})

			none := breakers.Defaults
			none.Failures = 0
			p = start(t, &now, none, store)
			p.Sync(t.Context())
			start(t, &now, breakers.Defaults, other).want()
		})
	}
}

// dying is a store of which the process dies while it writes.
type dying struct {
	durable.Document
	dead atomic.Bool
}

func (d *dying) Put(ctx context.Context, doc []byte) error {
	if d.dead.Load() {
		return errors.New("dead")
	}
	return d.Document.Put(ctx, doc)
}

// TestNotStored: a crash between a change and its write leaves the status of before. The server is
// called until the breaker opens again, or probed. A store that comes back gets what it missed.
func TestNotStored(t *testing.T) {
	now := began
	store := &dying{Document: durable.Document(filepath.Join(t.TempDir(), "breakers.json"))}
	p := start(t, &now, breakers.Defaults, store)
	for range 4 {
		p.calls(true)
	}
	p.Sync(t.Context())
	store.dead.Store(true)
	p.calls(true)
	if p.calls(true) {
		t.Error("an open breaker lets a call through")
	}
	start(t, &now, breakers.Defaults, store).want(breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.Closed, Failures: 4})

	store.dead.Store(false)
	p.Sync(t.Context())
	store.dead.Store(true)
	now = now.Add(time.Minute)
	p.calls(false)
	p.want()
	start(t, &now, breakers.Defaults, store).want(breakers.Breaker{Tenant: "acme", Server: "crm", Status: breakers.HalfOpen, Failures: 5, Since: began})

	if err := store.Document.Put(t.Context(), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := breakers.Read(t.Context(), store); err == nil {
		t.Error("half a document is read")
	}
}
