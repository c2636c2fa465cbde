package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/clock"
)

// TestLease: one process owns the lease at a time. A process that releases it, or does not renew
// it for long enough, is replaced; a process that has lost it is informed.
func TestLease(t *testing.T) {
	s := start(t)
	core := connect(t, s, natsserver.Router)
	must(t, bus.EnsureCell(t.Context(), core))
	must(t, bus.EnsureCell(t.Context(), core)) // it is there
	lease := func(holder string) *bus.Lease {
		t.Helper()
		l, err := bus.NewLease(t.Context(), connect(t, s, natsserver.Recorder), bus.LeaseRecorder, holder)
		must(t, err)
		l.Hurry(10*time.Millisecond, 2*time.Second)
		return l
	}
	keep := func(l *bus.Lease) (end func() error) {
		ctx, cancel := context.WithCancel(t.Context())
		kept := make(chan error, 1)
		go func() { kept <- l.Keep(ctx) }()
		return func() error { cancel(); return <-kept }
	}
	taken := func(l *bus.Lease) <-chan error {
		out := make(chan error, 1)
		go func() { out <- l.Take(t.Context()) }()
		return out
	}

	a, b, c := lease("a"), lease("b"), lease("c")
	must(t, a.Take(t.Context()))
	end := keep(a)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.Take(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("two have the lease: %v", err)
	}
	waits := taken(b)
	must(t, end())
	must(t, <-waits) // a has released it
	waits = taken(c)
	must(t, <-waits) // b did not renew it
	if err := b.Keep(t.Context()); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("who has lost it: %v", err)
	}
	must(t, keep(c)())
}

// TestLeaseHeld: who has not renewed for long enough does not hold the lease, although it is still
// its own in the bucket, and does not renew it again.
func TestLeaseHeld(t *testing.T) {
	s := start(t)
	must(t, bus.EnsureCell(t.Context(), connect(t, s, natsserver.Router)))
	l, err := bus.NewLease(t.Context(), connect(t, s, natsserver.Router), bus.LeaseRouter, "a")
	must(t, err)
	l.Hurry(10*time.Millisecond, time.Second)
	if l.Held() {
		t.Error("it is held before it is taken")
	}
	must(t, l.Take(t.Context()))
	if !l.Held() {
		t.Error("it is not held")
	}
	must(t, clock.Every(t.Context(), 10*time.Millisecond, func() bool { return !l.Held() }))
	if err := l.Keep(t.Context()); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("who was paused: %v", err)
	}
}

// TestReached: a router receives the position that the recorder has reached, and ready reports
// when it listens.
func TestReached(t *testing.T) {
	s := start(t)
	core, recorder := connect(t, s, natsserver.Router), connect(t, s, natsserver.Recorder)
	if err := bus.TellReached(t.Context(), recorder, 1); err == nil {
		t.Error("there is no bucket")
	}
	must(t, bus.EnsureCell(t.Context(), core))
	must(t, bus.TellReached(t.Context(), recorder, 7))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	heard := make(chan int64, 2)
	ended := make(chan error, 1)
	go func() { ended <- bus.HearReached(ctx, core, func(at int64) { heard <- at }) }()
	if at := <-heard; at != 7 {
		t.Errorf("at first %d", at)
	}
	must(t, bus.TellReached(t.Context(), recorder, 8))
	if at := <-heard; at != 8 {
		t.Errorf("then %d", at)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
