package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/internal/ratelimit"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func caller(name string) ratelimit.Caller { return ratelimit.Caller{Name: name} }

func TestBucketRefills(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	l := ratelimit.New(100, 900*time.Second, ratelimit.Unshared(10), c.now)
	for i := range 100 {
		if _, ok := l.Allow(caller("a")); !ok {
			t.Fatalf("request %d refused", i)
		}
	}
	wait, ok := l.Allow(caller("a"))
	if ok || wait != 9*time.Second {
		t.Errorf("request 101: allowed %v, wait %v, want 9s", ok, wait)
	}
	if _, ok := l.Allow(caller("b")); !ok {
		t.Error("another caller is refused")
	}
	c.t = c.t.Add(wait)
	if _, ok := l.Allow(caller("a")); !ok {
		t.Error("refused after the wait it was told")
	}
	if _, ok := l.Allow(caller("a")); ok {
		t.Error("a refused request has left a token")
	}
	if wait, spent := l.Exhausted(caller("a")); !spent || wait != 9*time.Second {
		t.Errorf("spent %v, wait %v", spent, wait)
	}
	for range 2 { // asking takes none
		if _, spent := l.Exhausted(caller("b")); spent {
			t.Error("another caller has spent its bucket")
		}
	}
}

// Of too many callers the one not seen longest is forgotten, and only that one.
func TestCallersAreBounded(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	l := ratelimit.New(1, time.Hour, ratelimit.Unshared(2), c.now)
	for _, key := range []string{"a", "b", "a", "c"} { // c takes b's place
		l.Allow(caller(key))
	}
	for _, want := range []struct {
		key string
		ok  bool
	}{{"a", false}, {"c", false}, {"b", true}} {
		if _, ok := l.Allow(caller(want.key)); ok != want.ok {
			t.Errorf("%s: allowed %v, want %v", want.key, ok, want.ok)
		}
	}
}

// TestBucketsHaveShares: whoever makes many names forgets buckets of its own key, and after them
// those of its own tenant that has most, so nobody else begins with a full one.
func TestBucketsHaveShares(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	for name, flood := range map[string]func(n int) ratelimit.Caller{
		"a key":       func(n int) ratelimit.Caller { return ratelimit.Caller{Tenant: "b", Key: "1", Name: fmt.Sprint(n)} },
		"the own key": func(n int) ratelimit.Caller { return ratelimit.Caller{Tenant: "a", Key: "2", Name: fmt.Sprint(n)} },
		"many keys":   func(n int) ratelimit.Caller { return ratelimit.Caller{Tenant: "b", Key: fmt.Sprint(n)} },
		"three keys": func(n int) ratelimit.Caller {
			return ratelimit.Caller{Tenant: "a", Key: fmt.Sprint("k", n%3), Name: fmt.Sprint(n)}
		},
		"no one's name": func(n int) ratelimit.Caller { return ratelimit.Caller{Name: fmt.Sprint(n)} },
	} {
		l := ratelimit.New(1, time.Hour, ratelimit.Shares{All: 12, Tenant: 8, Key: 4}, c.now)
		victim := ratelimit.Caller{Tenant: "a", Key: "1", Name: "ana"}
		l.Allow(victim)
		for n := range 100 {
			l.Allow(flood(n))
		}
		if _, ok := l.Allow(victim); ok {
			t.Errorf("%s with many names has filled another's bucket", name)
		}
	}
}
