//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// signalled is an input whose first read says that its sandbox runs.
type signalled struct {
	strings.Reader

	once sync.Once
	at   chan<- struct{}
}

func (s *signalled) Read(p []byte) (int, error) {
	s.once.Do(func() { s.at <- struct{}{} })
	return s.Reader.Read(p)
}

// sleepers has a tenant's scripts sleep in as many sandboxes as it gets, wants
// more, and returns when the sandboxes run.
func sleepers(t *testing.T, s *Sandbox, tenant string, places int) (ended <-chan error) {
	t.Helper()
	const more = 4
	at, errs := make(chan struct{}, places+more), make(chan error, places+more)
	for range places + more {
		go func() {
			_, err := s.Run(t.Context(), Job{Tenant: tenant, Script: "import time; time.sleep(60)", Input: &signalled{at: at}})
			errs <- err
		}()
	}
	for range places {
		<-at
	}
	return errs
}

// TestOneTenantDoesNotStallOthers: another's script runs although a tenant's
// sleep in all the places that it can have, and wants more.
func TestOneTenantDoesNotStallOthers(t *testing.T) {
	s := open(t, Config{Workers: -1, Concurrency: 3})
	ended := sleepers(t, s, "greedy", 2)
	for range 3 {
		if res := run(t, s, Job{Tenant: "other", Script: "print(1)"}); res.Outcome != OK {
			t.Errorf("%+v", res)
		}
	}
	_, err := s.Run(t.Context(), Job{Tenant: "greedy", Script: "print(1)", Queue: time.Millisecond})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	s.Stop(0)
	for range 6 {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
}

// TestStopStartsNoSandbox: who waits is sent away at once, what runs is ended after
// its grace, and nothing begins.
func TestStopStartsNoSandbox(t *testing.T) {
	s := open(t, Config{Workers: 1, Concurrency: 1})
	if err := s.WaitWarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := sleepers(t, s, "a", 1)
	s.Stop(time.Hour)
	for range 4 {
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := s.Run(t.Context(), Job{Script: "print(1)"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if n := s.places.Used(); n != 1 {
		t.Errorf("%d run", n)
	}
	s.Stop(0)
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestTimeIsCountedFromTheTurn: a run is cut when its own time is over, however
// long the context lasts.
func TestTimeIsCountedFromTheTurn(t *testing.T) {
	s := open(t, Config{Workers: -1})
	_, err := s.Run(t.Context(), Job{Script: "import time; time.sleep(60)", Time: time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
