package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

const origin = "writ/test"

// patience bounds waits that end at once in a correct system.
const patience = 20 * time.Second

// world is a gateway between a real NATS server, a CORE that verifies every intent as the router
// does and has plans in a map, and a manager who follows a script.
type world struct {
	*core
	t       *testing.T
	gateway *Gateway
	http    *httptest.Server
	nats    *natsserver.Server
	clock   *setClock
	log     *logBook
	fresh   chan bus.FreshGrant // grants that the manager receives

	stopManager, stopRouter func()
	drivers                 sync.Map // drivers, by plan
}

// each returns the handler of requests to every process that runs plans.
func (w *world) each(c bus.Conn, role string) map[string]bus.Handler {
	if role != natsserver.Manager && role != natsserver.Workflow {
		return nil
	}
	return map[string]bus.Handler{bus.FindRun(role): func(_ context.Context, data []byte) []byte {
		var q bus.FindRunRequest
		if err := json.Unmarshal(data, &q); err != nil {
			w.t.Error(err)
		}
		driver, ok := w.drivers.Load(q.PlanID)
		if !ok {
			return nil
		}
		return marshal(w.t, bus.FindRunReply{Driver: driver.(string), Instance: c.Instance()})
	}}
}

// script is a manager's handling of a turn; say publishes a frame.
type script func(h bus.PlanDispatch, say func(bus.FrameKind, any))

func newWorld(t *testing.T, manager script, change ...func(*Config, *pace)) *world {
	t.Helper()
	ns, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Close)
	key, err := intents.GenerateSigner(intents.RoleGateway)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, nats: ns, clock: &setClock{now: time.Now()}, log: &logBook{}, fresh: make(chan bus.FreshGrant, 100)}
	w.core = newCore(t, key, w.clock.Now)
	w.stopRouter = w.serve("router", w.endpoints())
	if manager != nil {
		w.startManager(manager)
	}
	cfg := Config{
		Bus: w.conn(natsserver.Gateway), Frames: w.conn(natsserver.Frames), Key: key, Origin: origin,
		Now: w.clock.Now, Log: slog.New(slog.NewJSONHandler(w.log, nil)),
	}
	p := defaultPace
	for _, f := range change {
		f(&cfg, &p)
	}
	if w.gateway, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	w.gateway.pace = p
	w.gateway.Reads(w.core)
	w.http = httptest.NewUnstartedServer(nil)
	w.http.Config = edge.Default.Server(contract(t).Handler(t, w.gateway.Handler()))
	w.http.Start()
	t.Cleanup(w.http.Close)
	return w
}

func (w *world) conn(user string) bus.Conn {
	w.t.Helper()
	c, err := w.nats.Connect(w.t.Context(), user)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) serve(user string, endpoints map[string]bus.Handler) (stop func()) {
	w.t.Helper()
	return w.serveOn(w.conn(user), user, endpoints)
}

func (w *world) serveOn(c bus.Conn, user string, endpoints map[string]bus.Handler) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	s := bus.Service{Name: bus.ServiceName(user), Version: "1.0.0", Queue: user, Endpoints: endpoints, Each: w.each(c, user)}
	if user == natsserver.Router { // each router hears everything
		s.Endpoints, s.Each = nil, endpoints
	}
	go func() { ended <- c.Serve(ctx, s, ready) }()
	select {
	case <-ready:
	case err := <-ended:
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// startManager accepts every turn at once and plays the script concurrently.
func (w *world) startManager(s script) { w.stopManager = w.startDriver(natsserver.Manager, s) }

// startDriver does so for the plans that a role runs.
func (w *world) startDriver(role string, s script) (stop func()) {
	conn := w.conn(role)
	var playing sync.WaitGroup
	end := w.serveOn(conn, role, map[string]bus.Handler{
		bus.Agent(role): func(_ context.Context, data []byte) []byte {
			var h bus.PlanDispatch
			if err := json.Unmarshal(data, &h); err != nil {
				w.t.Error(err)
			}
			w.checkDispatch(h)
			playing.Go(func() {
				s(h, func(kind bus.FrameKind, data any) {
					raw, err := bus.NewFrame(kind, data)
					if err == nil {
						err = conn.Publish(bus.Turn(h.Tenant, h.TurnID), raw)
					}
					if err != nil {
						w.t.Error(err)
					}
				})
			})
			return marshal(w.t, bus.PlanDispatchReply{Accepted: true, Instance: conn.Instance()})
		},
		bus.Grant(role, conn.Instance()): func(_ context.Context, data []byte) []byte {
			var g bus.FreshGrant
			if err := json.Unmarshal(data, &g); err != nil {
				w.t.Error(err)
			}
			w.fresh <- g
			return marshal(w.t, bus.FreshGrantReply{Accepted: true})
		},
	})
	stop = func() { end(); playing.Wait() }
	w.t.Cleanup(stop)
	return stop
}

// checkDispatch: the grant is the user's, for this turn, and the plan is open.
func (w *world) checkDispatch(h bus.PlanDispatch) {
	g, err := intents.OpenGrant(h.Grant, origin, w.keys(), w.clock.Now())
	if err != nil {
		w.t.Errorf("hand-out: %v", err)
	}
	plan, ok := w.plan(h.PlanID)
	if !ok || g.Subject != h.UserID || g.Tenant != h.Tenant || g.Turn != h.TurnID || g.Session != h.SessionID || h.Driver == "" {
		w.t.Errorf("hand-out %+v does not fit grant %+v and plan %+v", h, g, plan)
	}
}

// answered is a response whose body has been read.
type answered struct {
	StatusCode int
	Header     http.Header
}

// call sends a request with the key of ana and decodes the answer.
func (w *world) call(method, path, body string, header http.Header, into any) answered {
	w.t.Helper()
	resp := w.do(w.t.Context(), method, path, body, header)
	defer resp.Body.Close()
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			w.t.Errorf("%s %s: %d: %v", method, path, resp.StatusCode, err)
		}
	}
	return answered{resp.StatusCode, resp.Header}
}

func (w *world) do(ctx context.Context, method, path, body string, header http.Header) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", anaKey)
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// refused checks that a request is answered with a problem of a code.
func (w *world) refused(method, path, body string, header http.Header, code intents.Code, pointer string) problem.Problem {
	w.t.Helper()
	var p problem.Problem
	resp := w.call(method, path, body, header, &p)
	if resp.StatusCode != code.Info().Status || p.Code != code || p.Pointer != pointer || resp.Header.Get("Content-Type") != problem.ContentType || p.TraceID == "" {
		w.t.Errorf("%s %s: %d %q %+v, want %s at %q", method, path, resp.StatusCode, resp.Header.Get("Content-Type"), p, code, pointer)
	}
	return p
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return raw
}

// setClock is set by tests.
type setClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *setClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *setClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// logBook records what is logged.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s does not come", what)
		panic("unreachable")
	}
}
