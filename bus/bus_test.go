package bus_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
)

// executors are those of the tests: two, so that one can try the other's types.
var executors = map[string][]string{
	"python": {"exec_python"},
	"logs":   {"logs.stream"},
	"skills": {"skill.call"},
	"memory": {"write_memory", "read_memory", "memory.query"},
}

// patience bounds waits that end at once in a correct system.
const patience = 10 * time.Second

func start(t *testing.T) *natsserver.Server {
	t.Helper()
	return startOn(t, "")
}

func startOn(t *testing.T, listen string) *natsserver.Server {
	t.Helper()
	s, err := natsserver.Start(t.Context(), natsserver.Options{
		Dir: t.TempDir(), Listen: listen, Executors: executors, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, s *natsserver.Server, user string) bus.Conn {
	t.Helper()
	c, err := s.Connect(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve runs a service until the test ends or stop is called; stop waits for it.
func serve(t *testing.T, c bus.Conn, s bus.Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.Serve(ctx, s, ready) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("serve %s: %v", s.Name, err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve %s: %v", s.Name, err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// echo answers with its name and the request.
func echo(name string, subjects ...string) bus.Service {
	s := bus.Service{Name: bus.ServiceName(name), Version: "1.0.0", Queue: name, Endpoints: map[string]bus.Handler{}}
	handlers := s.Endpoints
	if name == natsserver.Router { // each router hears everything
		s.Endpoints, s.Each = nil, handlers
	}
	for _, subject := range subjects {
		handlers[subject] = func(_ context.Context, data []byte) []byte {
			return append([]byte(name+" "+subject+" "), data...)
		}
	}
	return s
}

func request(t *testing.T, c bus.Conn, subject, data string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reply, err := c.Request(ctx, subject, []byte(data))
	return string(reply), err
}
