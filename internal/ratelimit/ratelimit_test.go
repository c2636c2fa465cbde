package ratelimit_test

import (
	"testing"
	"time"

	"aob.dev/writ/internal/ratelimit"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func TestBucketRefills(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	l := ratelimit.New(100, 900*time.Second, 10, c.now)
	for i := range 100 {
		if _, ok := l.Allow("a"); !ok {
			t.Fatalf("request %d refused", i)
		}
	}
	wait, ok := l.Allow("a")
	if ok || wait != 9*time.Second {
		t.Errorf("request 101: allowed %v, wait %v, want 9s", ok, wait)
	}
	if _, ok := l.Allow("b"); !ok {
		t.Error("another caller is refused")
	}
	c.t = c.t.Add(wait)
	if _, ok := l.Allow("a"); !ok {
		t.Error("refused after the wait it was told")
	}
	if _, ok := l.Allow("a"); ok {
		t.Error("a refused request has left a token")
	}
	if wait, spent := l.Spent("a"); !spent || wait != 9*time.Second {
		t.Errorf("spent %v, wait %v", spent, wait)
	}
	for range 2 { // asking takes none
		if _, spent := l.Spent("b"); spent {
			t.Error("another caller has spent its bucket")
		}
	}
}

// Of too many callers the one not seen longest is forgotten, and only that one.
func TestCallersAreBounded(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	l := ratelimit.New(1, time.Hour, 2, c.now)
	for _, key := range []string{"a", "b", "a", "c"} { // c takes b's place
		l.Allow(key)
	}
	for _, want := range []struct {
		key string
		ok  bool
	}{{"a", false}, {"c", false}, {"b", true}} {
		if _, ok := l.Allow(want.key); ok != want.ok {
			t.Errorf("%s: allowed %v, want %v", want.key, ok, want.ok)
		}
	}
}
