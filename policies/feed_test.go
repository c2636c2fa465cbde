package policies

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/intents"
)

// shelf is an OPA bundle server: one bundle, an ETag, a token.
type shelf struct {
	mu       sync.Mutex // guards the fields below
	raw      []byte
	etag     string
	status   int
	fresh    int // answers with a body
	answered chan struct{}
}

func (s *shelf) put(raw []byte, etag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw, s.etag = raw, etag
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer secret":
		w.WriteHeader(http.StatusUnauthorized)
	case s.status != 0:
		w.WriteHeader(s.status)
	case r.Header.Get("If-None-Match") == s.etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		s.fresh++
		w.Header().Set("ETag", s.etag)
		_, _ = w.Write(s.raw)
	}
	select {
	case s.answered <- struct{}{}:
	default:
	}
}

// waitRequests waits until the server has answered n times more.
func (s *shelf) waitRequests(n int) {
	for range n {
		<-s.answered
	}
}

// remark is a tree that differs from tiny by a comment.
func remark(text string) Source { return source(tiny + "\n# " + text + "\n") }

type reported struct {
	engine *Engine
	err    error
}

// follow follows a feed until the test ends.
func follow(t *testing.T, f *Feed, l *Live, prove Proof) chan reported {
	t.Helper()
	reports, done := make(chan reported, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- f.Follow(ctx, l, prove, func(e *Engine, err error) { reports <- reported{e, err} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("follow ended with %v", err)
		}
	})
	return reports
}

func proven(context.Context, *Engine) error { return nil }

func live(t *testing.T, f *Feed) *Live {
	t.Helper()
	tree, err := f.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewTree(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return NewLive(e)
}

// TestFollowServer: a bundle server's newer bundle comes into force; a bundle that is older,
// different under the same revision, wrongly signed, broken, unproved or missing never replaces
// it.
func TestFollowServer(t *testing.T) {
	key, stranger := signer(t, intents.RoleOperator), signer(t, intents.RoleOperator)
	s := &shelf{answered: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.put(build(t, Tree{source(tiny), 5}, &key), `"5"`)
	place := Place{At: server.URL + "/bundle.tar.gz", Key: key.Public(), Token: "secret"}
	f := &Feed{Main: place, Poll: time.Millisecond}
	go s.waitRequests(1)
	l := live(t, f)
	unproved := errors.New("unproved")
	reports := follow(t, f, l, func(_ context.Context, e *Engine) error {
		if e.Revision() == 66 {
			return unproved
		}
		return nil
	})
	s.waitRequests(3)
	if s.fresh != 1 || l.Engine().Revision() != 5 {
		t.Errorf("%d times fetched, revision %d in force", s.fresh, l.Engine().Revision())
	}

	drain := func() { // later reports are about what the server returns from now on
		s.waitRequests(2)
		for len(reports) > 0 {
			<-reports
		}
	}
	stays := func(what string, want error) {
		t.Helper()
		drain()
		s.waitRequests(2)
		r := <-reports
		if r.err == nil || want != nil && !errors.Is(r.err, want) {
			t.Errorf("%s: %v", what, r.err)
		}
		if now := l.Engine(); now.Revision() != 5 || now.Digest() != source(tiny).Digest() {
			t.Errorf("%s is in force", what)
		}
	}
	s.put(build(t, Tree{remark("older"), 4}, &key), `"4"`)
	stays("an older revision", ErrOlder)
	s.put(build(t, Tree{remark("same"), 5}, &key), `"5b"`)
	stays("another content", ErrOlder)
	s.put(build(t, Tree{remark("stranger"), 6}, &stranger), `"6"`)
	stays("a stranger's", nil)
	s.put(build(t, Tree{remark("unsigned"), 6}, nil), `"6u"`)
	stays("an unsigned one", nil)
	s.put([]byte("no bundle"), `"x"`)
	stays("no bundle", nil)
	s.mu.Lock()
	s.status = http.StatusInternalServerError
	s.mu.Unlock()
	stays("an error", nil)
	s.mu.Lock()
	s.status = 0
	s.mu.Unlock()

	s.put(build(t, Tree{remark("newer"), 8}, &key), `"8"`)
	for r := range reports {
		if r.err == nil {
			break
		}
	}
	if now := l.Engine(); now.Revision() != 8 || now.Digest() != remark("newer").Digest() {
		t.Errorf("revision %d is in force", now.Revision())
	}
	s.put(build(t, Tree{source("package writ.authz\n\nallow if {\n"), 9}, &key), `"9"`)
	for r := range reports {
		if r.err != nil {
			break
		}
	}
	s.put(build(t, Tree{remark("unproved"), 66}, &key), `"66"`)
	for r := range reports {
		if errors.Is(r.err, unproved) {
			break
		}
	}
	if l.Engine().Revision() != 8 {
		t.Errorf("revision %d is in force", l.Engine().Revision())
	}
}

// TestServerRefused: the first response is no bundle.
func TestServerRefused(t *testing.T) {
	key := signer(t, intents.RoleOperator)
	s := &shelf{raw: build(t, Tree{source(tiny), 5}, &key), etag: `"5"`}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	elsewhere := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusFound))
	t.Cleanup(elsewhere.Close)
	for name, p := range map[string]Place{
		"no token":    {At: server.URL, Key: key.Public()},
		"no key":      {At: server.URL, Token: "secret"},
		"a redirect":  {At: elsewhere.URL, Key: key.Public(), Token: "secret"},
		"nobody":      {At: "http://127.0.0.1:1/x", Key: key.Public()},
		"no file":     {At: filepath.Join(t.TempDir(), "x.tar.gz"), Key: key.Public()},
		"no key here": {At: write(t, filepath.Join(t.TempDir(), "x.tar.gz"), s.raw)},
	} {
		if _, err := (&Feed{Main: p}).Load(t.Context()); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	if _, err := (&Feed{Main: Place{At: server.URL, Key: key.Public(), Token: "secret"}}).Load(t.Context()); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	part := path + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(part, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFollowFile: a bundle file is replaced, with an extension beside it.
func TestFollowFile(t *testing.T) {
	key := signer(t, intents.RoleOperator)
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "main.tar.gz"), build(t, Tree{source(tiny), 1}, &key))
	night := filepath.Join(dir, "night")
	if err := os.Mkdir(night, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(night, "night.rego"), []byte(ext))
	f := &Feed{Main: Place{At: path, Key: key.Public()}, Extensions: []Extension{{"night", Place{At: night}}}}
	l := live(t, f)
	in := map[string]any{
		"intent": map[string]any{"type": "allowed"}, "actor": map[string]any{"tenant": "acme"},
		"context": map[string]any{"labels": map[string]any{"night": "yes", "duty": "notify"}},
	}
	denied := func() string {
		r, err := l.Engine().Decide(t.Context(), in)
		if err != nil || len(r.Deny) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Deny[0].Reason
	}
	if denied() != "Not at night." {
		t.Error("the extension does not deny")
	}
	reports := follow(t, f, l, proven)
	write(t, path, build(t, Tree{remark("two"), 2}, &key))
	for l.Engine().Revision() != 2 {
		<-reports
	}
	before := l.Engine()
	write(t, filepath.Join(night, "night.rego"), []byte("package writ.authz\n\nallow := true\n"))
	for r := range reports {
		if r.err != nil {
			break
		}
	}
	if l.Engine() != before || denied() != "Not at night." {
		t.Error("an extension that allows came into force")
	}
	if since := l.Since(); since.IsZero() || time.Since(since) > time.Hour {
		t.Errorf("in force since %s", since)
	}
}

// TestFeedKeepsTheTokenPrivate: a token is not sent to another machine in the clear: no
// connection is made.
func TestFeedKeepsTheTokenPrivate(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel() // makes any connection fail
	for at, private := range map[string]bool{
		"http://bundles.example/b.tar.gz":             false,
		"http://192.0.2.1:8181/b.tar.gz":              false,
		"http://localhost.example/b.tar.gz":           false,
		"http://127.0.0.1.example/b.tar.gz":           false,
		"http://127.0.0.1:1@bundles.example/b.tar.gz": false,
		"https://bundles.example/b.tar.gz":            true,
		"http://127.0.0.1:1/b.tar.gz":                 true,
		"http://[::1]:1/b.tar.gz":                     true,
		"http://localhost:1/b.tar.gz":                 true,
	} {
		f := Feed{Main: Place{At: at, Token: "secret"}}
		if _, err := f.Load(gone); errors.Is(err, context.Canceled) != private {
			t.Errorf("%s: %v", at, err)
		}
		f.Main.Token = ""
		if _, err := f.Load(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("%s without a token: %v", at, err)
		}
	}
}
