package node

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// until is a service that runs until it is told to end.
func until(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestGroupStopsInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newGroup(ctx)
		var ended []string
		for _, name := range []string{"recorder", "router", "gateway"} {
			g.run(name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second) // in the bubble: the others would be done by then
				ended = append(ended, name)
				return ctx.Err()
			})
		}
		cancel()
		synctest.Wait()
		if len(ended) != 0 {
			t.Errorf("%v ended with the node's context, before those that depend on it", ended)
		}
		if err := g.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if d := cmp.Diff([]string{"gateway", "router", "recorder"}, ended); d != "" {
			t.Errorf("order (-want +got):\n%s", d)
		}
		if err := g.stop(); err != nil || len(ended) != 3 {
			t.Errorf("a second stop: %v", err)
		}
	})
}

func TestGroupServiceEndsByItself(t *testing.T) {
	broken := errors.New("broken")
	for name, returns := range map[string]error{"with an error": broken, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t.Context())
			g.run("other", until)
			g.run("recorder", func(context.Context) error { return returns })
			err := <-g.failed
			if err == nil || !strings.HasPrefix(err.Error(), "recorder") || returns != nil && !errors.Is(err, broken) {
				t.Errorf("failed with %v", err)
			}
			if err := g.stop(); err != nil {
				t.Errorf("stop tells it again: %v", err)
			}
		})
	}
}

// TestGroupSecondFailure: the first one ends the node, and no later one is lost.
func TestGroupSecondFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t.Context())
		g.run("a", func(context.Context) error { return errors.New("first") })
		synctest.Wait()
		g.run("b", func(context.Context) error { return errors.New("second") })
		synctest.Wait()
		if err := <-g.failed; err == nil || err.Error() != "a: first" {
			t.Errorf("failed with %v", err)
		}
		if err := g.stop(); err == nil || err.Error() != "b: second" {
			t.Errorf("stop: %v", err)
		}
	})
}

// TestGroupStopFails: what goes wrong while stopping is told, and the others stop.
func TestGroupStopFails(t *testing.T) {
	g := newGroup(t.Context())
	stopped := false
	g.run("first", func(ctx context.Context) error {
		<-ctx.Done()
		stopped = true
		return nil
	})
	g.run("second", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("could not flush")
	})
	if err := g.stop(); err == nil || err.Error() != "second: could not flush" || !stopped {
		t.Errorf("error %v; the other stopped: %t", err, stopped)
	}
}

func TestGroupServe(t *testing.T) {
	listens := func(ctx context.Context, ready chan<- struct{}) error {
		close(ready)
		return until(ctx)
	}
	g := newGroup(t.Context())
	if err := g.serve("router", listens); err != nil {
		t.Fatal(err)
	}
	err := g.serve("gateway", func(context.Context, chan<- struct{}) error { return errors.New("refused") })
	if err == nil || err.Error() != "gateway: refused" {
		t.Errorf("a service that never listens: %v", err)
	}
	if err := g.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	g = newGroup(ctx)
	cancel()
	err = g.serve("slow", func(ctx context.Context, _ chan<- struct{}) error { return until(ctx) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("told to end while waiting: %v", err)
	}
	if err := g.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestGroupHTTP: a request that runs when the node is told to end gets its answer.
func TestGroupHTTP(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began, finish := make(chan struct{}), make(chan struct{})
	g := newGroup(t.Context())
	g.http("http", &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-finish
		_, _ = io.WriteString(w, "done")
	})}, l)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, failed := make(chan string, 1), make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			failed <- err
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- g.stop() }()
	select {
	case err := <-stopped:
		t.Fatalf("stopped before its request had ended: %v", err)
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	close(finish)
	select {
	case got := <-answer:
		if got != "done" {
			t.Errorf("answer %q", got)
		}
	case err := <-failed:
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestGroupHTTPFails: a listener that breaks fails the node.
func TestGroupHTTPFails(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGroup(t.Context())
	g.http("http", &http.Server{ReadHeaderTimeout: time.Minute}, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-g.failed; err == nil || !strings.HasPrefix(err.Error(), "http: ") {
		t.Errorf("failed with %v", err)
	}
	if err := g.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
