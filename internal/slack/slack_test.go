package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/egresstest"
)

const token = "xoxb-not-a-real-one"

// workspace answers as Slack's Web API is documented to.
type workspace struct {
	t        *testing.T
	mu       sync.Mutex
	requests []string
	next     func(w http.ResponseWriter) bool // has it answered?
}

func (s *workspace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.TrimPrefix(r.URL.Path, "/api/")+"?"+r.URL.RawQuery)
	if s.next != nil && s.next(w) {
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	say := func(v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			s.t.Error(err)
		}
	}
	refuse := func(why string) { say(map[string]any{"ok": false, "error": why}) }
	ana := map[string]any{"ok": true, "user": map[string]any{
		"id": "U012AB3CDE", "team_id": "T012AB3C4", "name": "ana", "deleted": false, "real_name": "Ana Moreno", "tz": "America/Los_Angeles",
		"profile": map[string]any{"real_name": "Ana Moreno", "display_name": "Ana", "email": "ana@example.com", "image_24": "https://…"},
	}}
	if r.Header.Get("Authorization") != "Bearer "+token {
		refuse("invalid_auth")
		return
	}
	switch {
	case r.URL.Path == "/api/users.info" && r.FormValue("user") == "U012AB3CDE", r.URL.Path == "/api/users.lookupByEmail" && r.FormValue("email") == "ana@example.com":
		say(ana)
	case r.URL.Path == "/api/users.info":
		refuse("user_not_found")
	case r.URL.Path == "/api/users.lookupByEmail":
		refuse("users_not_found")
	default:
		refuse("unknown_method")
	}
}

func (s *workspace) times() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.requests) }

func serve(t *testing.T, token string) (*Client, *workspace) {
	t.Helper()
	s := &workspace{t: t}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return New(srv.URL+"/api", token), s
}

// TestProfile: by Slack's id and by e-mail address; what is known, and that nothing is, is
// kept; and nobody else's id goes to Slack.
func TestProfile(t *testing.T) {
	c, s := serve(t, token)
	for range 2 {
		for user, want := range map[string]string{
			"U012AB3CDE": "Ana <ana@example.com>", "ana@example.com": "Ana <ana@example.com>", "W9999999999": " <>", "nobody@example.com": " <>",
			"local": " <>", "emp-123": " <>", "UPPER": " <>", "a@b@c": " <>",
		} {
			name, email, err := c.Profile(t.Context(), user)
			if got := fmt.Sprintf("%s <%s>", name, email); got != want || err != nil {
				t.Errorf("%s: %s, %v; want %s", user, got, err, want)
			}
		}
	}
	if n := s.times(); n != 4 {
		t.Errorf("Slack was asked %d times: %v", n, s.requests)
	}
	for i := range maxKept + 10 {
		c.kept.Add(fmt.Sprint(i), profile{})
	}
	if n := c.kept.Len(); n != maxKept {
		t.Errorf("%d are kept", n)
	}
}

// TestLimited: Slack says how long to wait, and is not asked before.
func TestLimited(t *testing.T) {
	c, s := serve(t, token)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.now = func() time.Time { return now }
	for name, f := range map[string]struct {
		answer func(w http.ResponseWriter) bool
		wait   time.Duration
		says   string
	}{
		"too many": {func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, 2 * time.Minute, "HTTP 429"},
		"for a year": {func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "31536000")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, maxPause, "HTTP 429"},
		"down":    {func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusBadGateway); return true }, pause, "HTTP 502"},
		"no JSON": {func(w http.ResponseWriter) bool { fmt.Fprint(w, "<html>"); return true }, pause, "no JSON"},
		"too long": {func(w http.ResponseWriter) bool {
			fmt.Fprint(w, `{"ok":true,"x":"`+strings.Repeat("x", maxAnswer)+`"}`)
			return true
		}, pause, "no JSON"},
		"elsewhere": {func(w http.ResponseWriter) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusFound)
			return true
		}, pause, "HTTP 302"},
		"a scope": {func(w http.ResponseWriter) bool { fmt.Fprint(w, `{"ok":false,"error":"missing_scope"}`); return true }, pause, "missing_scope: look at slack_token"},
		"a lie": {func(w http.ResponseWriter) bool {
			fmt.Fprint(w, `{"ok":false,"error":"say this\nto the log"}`)
			return true
		}, pause, "an error without a name"},
	} {
		before := s.times()
		s.next = f.answer
		for range 3 {
			_, _, err := c.Profile(t.Context(), "U012AB3CDE")
			if err == nil || !strings.Contains(err.Error(), f.says) || strings.Contains(err.Error(), "U012AB3CDE") || strings.Contains(err.Error(), token) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := s.times() - before; n != 1 {
			t.Errorf("%s: asked %d times", name, n)
		}
		s.next = nil
		now = now.Add(f.wait - time.Second)
		if _, _, err := c.Profile(t.Context(), "U012AB3CDE"); err == nil {
			t.Errorf("%s: asked too soon", name)
		}
		now = now.Add(time.Second)
		if got, _, err := c.Profile(t.Context(), "U012AB3CDE"); got != "Ana" || err != nil {
			t.Errorf("%s: after the wait: %q, %v", name, got, err)
		}
		c.kept.Purge()
	}
}

// TestNobodyWaits: who goes away keeps nobody else from asking.
func TestNobodyWaits(t *testing.T) {
	c, _ := serve(t, token)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Profile(gone, "U012AB3CDE"); err == nil {
		t.Error("no error")
	}
	if got, _, err := c.Profile(t.Context(), "U012AB3CDE"); got != "Ana" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWrongToken is what Slack says of one, and the token is not in it.
func TestWrongToken(t *testing.T) {
	c, _ := serve(t, "xoxb-other")
	if _, _, err := c.Profile(t.Context(), "U012AB3CDE"); err == nil || !strings.Contains(err.Error(), "invalid_auth") || strings.Contains(err.Error(), "xoxb") {
		t.Error(err)
	}
}

// TestFaults: what keeps Slack from answering is told in words, without the user or the token.
func TestFaults(t *testing.T) {
	for name, b := range egresstest.Servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := New(b.URL, token).Profile(ctx, "ana@acme.example")
			b.Check(t, err, "users are shown by their ids")
			if err != nil && (strings.Contains(err.Error(), "ana@") || strings.Contains(err.Error(), token)) {
				t.Error(err)
			}
		})
	}
}
