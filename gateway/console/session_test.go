package console

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/ratelimit"
)

// TestSessionShares: every login gets a session. A key that logs in repeatedly ends its own
// sessions, and not those of others.
func TestSessionShares(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	clock := func() time.Time { return now }
	s := &Console{Config: Config{Now: clock}, sessions: ratelimit.NewRecent[*session](shares, sessionLife, clock)}
	other := s.begin(&session{credentials: credentials{key: "theirs"}, Tenant: "b"})
	var last string
	for i := range 3 * shares.Key {
		now = now.Add(time.Second)
		last = s.begin(&session{credentials: credentials{key: "mine", user: fmt.Sprint(i)}, Tenant: "a"})
	}
	for _, token := range []string{other, last} {
		if _, ok := s.find(token); !ok {
			t.Error("a session is gone")
		}
	}
	if s.sessions.Len() != shares.Key+1 {
		t.Errorf("%d sessions", s.sessions.Len())
	}
}

// TestBelowPath: where public_url has a path, every link, form, redirect and cookie stays below it, and
// a proxy that changes Host does not make the console's own pages strangers.
func TestBelowPath(t *testing.T) {
	c, err := New(Config{API: &api{}, PublicURL: "https://writ.example/gate", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	login := send(c, http.MethodPost, "/console/login", url.Values{"key": {"key"}, "next": {"/console/plans"}}, nil)
	_ = login.Body.Close()
	if len(login.Cookies()) != 1 || login.Cookies()[0].Path != "/gate/console" || login.Header.Get("Location") != "/gate/console/plans" {
		t.Fatal(login.Header)
	}
	for _, path := range []string{"/console", "/console/now", "/console/approvals", "/console/nothing"} {
		resp := send(c, http.MethodGet, path, nil, login.Cookies()[0])
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if at := resp.Header.Get("Location"); at != "" && !strings.HasPrefix(at, "/gate/console/") {
			t.Errorf("%s: goes to %s", path, at)
		}
		for _, link := range regexp.MustCompile(`(?:href|src|action)="(/[^"]*)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(link[1], "/gate/console/") {
				t.Errorf("%s: a link to %s", path, link[1])
			}
		}
	}
	out := send(c, http.MethodGet, "/console/plans", nil, nil)
	_ = out.Body.Close()
	if at := out.Header.Get("Location"); at != "/gate/console/login?next=%2Fconsole%2Fplans" {
		t.Error(at)
	}
	for origin, want := range map[string]int{"https://writ.example": http.StatusSeeOther, "https://evil.example": http.StatusForbidden} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:8080/console/login", strings.NewReader("key=key"))
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {origin}}
		w := httptest.NewRecorder()
		if c.Handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d", origin, w.Code)
		}
	}
}

// TestSlidingSession: a session lasts an hour after its last page, and twelve hours in all. A page that
// stays open does not use it.
func TestSlidingSession(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	c, err := New(Config{API: &api{}, PublicURL: "https://writ.example", Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	cookie := logIn(t, c)
	open := func() (status, seconds int) {
		resp := send(c, http.MethodGet, "/console/now", nil, cookie)
		defer resp.Body.Close()
		for _, k := range resp.Cookies() {
			seconds = k.MaxAge
		}
		return resp.StatusCode, seconds
	}
	if status, seconds := open(); status != http.StatusOK || seconds != 0 {
		t.Errorf("at once: %d, %d s", status, seconds)
	}
	for hour := range 13 {
		now = now.Add(50 * time.Minute)
		if status, seconds := open(); status != http.StatusOK || seconds != int(sessionLife.Seconds()) {
			t.Errorf("after %d pages: %d, %d s", hour+1, status, seconds)
		}
	}
	now = now.Add(50 * time.Minute) // 11 h 40 min
	if status, seconds := open(); status != http.StatusOK || seconds != 20*60 {
		t.Errorf("near the end: %d, %d s", status, seconds)
	}
	now = now.Add(20 * time.Minute)
	if status, _ := open(); status != http.StatusSeeOther {
		t.Errorf("after twelve hours: %d", status)
	}

	cookie = logIn(t, c)
	for range 2 {
		now = now.Add(40 * time.Minute)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/now", nil)
		r.Header.Set("Accept", "text/event-stream")
		r.AddCookie(cookie)
		c.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	if status, _ := open(); status != http.StatusSeeOther {
		t.Errorf("of a page that stayed open: %d", status)
	}
}

// TestSessionWarns: a page says when its session ends within five minutes. To ask does not keep the
// session, and to keep it needs its token.
func TestSessionWarns(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	c, err := New(Config{API: &api{}, PublicURL: "https://writ.example", Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	cookie := logIn(t, c)
	s, _ := c.find(cookie.Value)
	ask := func(method, token string) (status int, e ending) {
		t.Helper()
		resp := send(c, method, sessionPath, url.Values{"csrf": {token}}, cookie)
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
				t.Fatal(err)
			}
		}
		return resp.StatusCode, e
	}
	now = now.Add(sessionLife - 4*time.Minute)
	if status, e := ask(http.MethodGet, ""); status != http.StatusOK || e.Seconds != 4*60 || e.Last || e.CSRF != s.CSRF || e.Who != s.User+" of "+s.Tenant || !e.Soon() {
		t.Errorf("%d %+v", status, e)
	}
	if status, _ := ask(http.MethodPost, "guess"); status != http.StatusForbidden {
		t.Errorf("with another token: %d", status)
	}
	if status, e := ask(http.MethodPost, s.CSRF); status != http.StatusOK || e.Seconds != int(sessionLife.Seconds()) || e.Soon() {
		t.Errorf("kept: %d %+v", status, e)
	}
	for range 14 {
		now = now.Add(45 * time.Minute)
		ask(http.MethodPost, s.CSRF)
	}
	now = s.began.Add(longestSession - 3*time.Minute)
	if status, e := ask(http.MethodPost, s.CSRF); status != http.StatusOK || e.Seconds != 3*60 || !e.Last {
		t.Errorf("near the last end: %d %+v", status, e)
	}
	resp := send(c, http.MethodGet, "/console/plans", nil, cookie)
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !strings.Contains(string(text), `data-who="`+s.User+" of "+s.Tenant+`" data-seconds="180" data-last>`) || !strings.Contains(string(text), "Log in again in another window") {
		t.Errorf("%v\n%s", err, text)
	}
}
