package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// shelf stores artifacts in memory, and separately the bytes that were received and not accepted
// yet.
type shelf struct {
	m, received sync.Map
	room        error // nil: there is
}

func (s *shelf) Room(context.Context, string, int64) error { return s.room }

func (s *shelf) Receive(_ context.Context, tenant, turn string, r io.Reader) (string, error) {
	b, err := io.ReadAll(r)
	if err == nil {
		s.received.Store(tenant+turn, b)
	}
	return "f_1", err
}

func (s *shelf) Forget(_ context.Context, tenant, turn string) error {
	s.received.Delete(tenant + turn)
	return nil
}

// accept does the work of the executor.
func (s *shelf) accept(tenant, turn, id string) (ref string, ok bool) {
	b, ok := s.received.Load(tenant + turn)
	if !ok || id != "f_1" {
		return "", false
	}
	ref = "cas://" + intents.Digest(b.([]byte))
	s.m.Store(tenant+ref, b)
	return ref, true
}

func (s *shelf) empty(t *testing.T) {
	t.Helper()
	for _, m := range []*sync.Map{&s.m, &s.received} {
		m.Range(func(at, _ any) bool { t.Errorf("kept %v", at); return true })
	}
}

func (s *shelf) Keep(_ context.Context, tenant string, r io.Reader) (string, int64, error) {
	b, err := io.ReadAll(r)
	ref := "cas://" + intents.Digest(b)
	if err == nil {
		s.m.Store(tenant+ref, b)
	}
	return ref, int64(len(b)), err
}

func (s *shelf) Fetch(_ context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	b, ok := s.m.Load(tenant + ref)
	if !ok {
		return nil, 0, ErrNoArtifact
	}
	return io.NopCloser(bytes.NewReader(b.([]byte))), int64(len(b.([]byte))), nil
}

func (s *shelf) Open(_ context.Context, tenant string, f catalog.ContentFile) (io.ReadCloser, error) {
	b, ok := s.received.Load(tenant + f.Plan + f.FileID)
	if !ok {
		return nil, ErrNoArtifact
	}
	return io.NopCloser(bytes.NewReader(b.([]byte))), nil
}

func withShelf(t *testing.T) (*world, *shelf) {
	t.Helper()
	s := &shelf{}
	w := newWorld(t, nil, func(c *Config, _ *pace) {
		c.Artifacts, c.Links = s, Links{Key: []byte("a key of this test")}
	})
	w.set(func(c *core) { c.shelf = s })
	return w, s
}

func (w *world) bytes(path string, header http.Header) (int, string, http.Header) {
	w.t.Helper()
	resp := w.do(w.t.Context(), "GET", path, "", header)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

func TestArtifactIsKeptAndRead(t *testing.T) {
	w, _ := withShelf(t)
	var kept artifactReply
	resp := w.call("POST", "/agent/artifacts?name=a.txt", "0123456789", http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, &kept)
	digest := intents.Digest([]byte("0123456789"))
	if resp.StatusCode != http.StatusCreated || kept.Artifact != "cas://"+digest || kept.Name != "a.txt" || kept.MediaType != "text/plain" || resp.Header.Get("Location") != kept.URL {
		t.Fatalf("%d %+v", resp.StatusCode, kept)
	}
	for name, tt := range map[string]struct {
		header http.Header
		status int
		want   string
	}{
		"all":      {nil, 200, "0123456789"},
		"the same": {http.Header{"If-None-Match": {`"` + digest + `"`}}, 304, ""},
	} {
		status, got, header := w.bytes(kept.URL, tt.header)
		if status != tt.status || got != tt.want || header.Get("ETag") != `"`+digest+`"` {
			t.Errorf("%s: %d %q %v", name, status, got, header)
		}
	}
	if n := len(w.submits("artifact.get")); n != 2 {
		t.Errorf("%d intents to read", n)
	}
	w.refused("GET", kept.URL, "", http.Header{"X-Api-Key": nil}, intents.Unauthorized, "")
	w.refused("POST", "/agent/artifacts", "x", http.Header{"X-Api-Key": nil}, intents.Unauthorized, "")
	w.refused("GET", "/agent/artifacts/"+intents.Digest([]byte("never")), "", nil, intents.NotFound, "")
	w.refused("GET", "/agent/artifacts/x", "", nil, intents.NotFound, "")
}

// A link needs no key, and is valid for one reader, digest and time limit, and for GET.
func TestArtifactLink(t *testing.T) {
	w, s := withShelf(t)
	ref, _, err := s.Keep(t.Context(), "acme", strings.NewReader("theirs"))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := s.Keep(t.Context(), "other", strings.NewReader("theirs"))
	if err != nil || other != ref {
		t.Fatal(err)
	}
	anyone := http.Header{"X-Api-Key": nil}
	link, before, err := w.gateway.cfg.Links.Link(ana, intents.ClientOf("k1"), ref, w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if status, got, _ := w.bytes(link, anyone); status != 200 || got != "theirs" {
		t.Fatalf("%d %q", status, got)
	}
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(name, value string) string {
		q := u.Query()
		q.Set(name, value)
		return u.Path + "?" + q.Encode()
	}
	for _, forged := range []string{
		changed("tenant", "other"), changed("user", "ben"), changed("client", ""), changed("roles", "admin"), changed("before", "99999999999"), changed("mac", "AAAA"), changed("more", "x"),
		strings.Replace(link, intents.Digest([]byte("theirs")), intents.Digest([]byte("x")), 1),
	} {
		w.refused("GET", forged, "", anyone, intents.Unauthorized, "")
	}
	digest := strings.TrimPrefix(ref, "cas://")
	if _, _, ok := w.gateway.cfg.Links.open(digest, u.Query(), before); ok {
		t.Error("open at its second")
	}
	if _, _, ok := (Links{}).open(digest, u.Query(), w.clock.Now()); ok {
		t.Error("no key opens")
	}
	if n := len(w.submits("artifact.get")); n != 0 {
		t.Errorf("%d intents for links", n)
	}
}

// A body that declares an excessive size is refused unread, and nothing is stored.
func TestArtifactTooLarge(t *testing.T) {
	w, s := withShelf(t)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/agent/artifacts", strings.NewReader("x"))
	req.Header.Set("X-Api-Key", anaKey)
	req.ContentLength = maxArtifact + 1
	got := httptest.NewRecorder()
	w.gateway.Handler().ServeHTTP(got, req)
	if got.Code != http.StatusRequestEntityTooLarge || len(w.submits("artifact.put")) != 0 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	s.empty(t)
}

// A caller who may not retain artifacts, or an artifact for which there is no room, is refused
// before anything is read.
func TestArtifactsAreRefusedUnread(t *testing.T) {
	for name, tt := range map[string]struct {
		mayNot string
		room   error
		code   intents.Code
		after  string
	}{
		"without the capability": {mayNot: "artifacts:write", code: intents.RBACForbidden},
		"beyond the quota":       {room: ErrQuota, code: intents.Overloaded, after: "600"},
		"below the floor":        {room: ErrNoRoom, code: intents.Overloaded, after: "60"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := withShelf(t)
			s.room = tt.room
			w.set(func(c *core) { c.mayNot = tt.mayNot })
			body := &unread{}
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/agent/artifacts", body)
			req.Header.Set("X-Api-Key", anaKey)
			got := httptest.NewRecorder()
			w.gateway.Handler().ServeHTTP(got, req)
			if got.Code != tt.code.Info().Status || !strings.Contains(got.Body.String(), string(tt.code)) || got.Header().Get("Retry-After") != tt.after {
				t.Errorf("%d %s, Retry-After %q", got.Code, got.Body, got.Header().Get("Retry-After"))
			}
			if body.read || len(w.submits("artifact.put")) != 0 {
				t.Error("it was read, or requested")
			}
			s.empty(t)
		})
	}
}

// unread is a body that records reads.
type unread struct{ read bool }

func (u *unread) Read([]byte) (int, error) {
	u.read = true
	return 0, io.EOF
}

// Bytes that an intent may not retain do not exist for anybody.
func TestArtifactRefused(t *testing.T) {
	w, s := withShelf(t)
	w.set(func(c *core) {
		c.refuse["artifact.put"] = &intents.Answer{Code: intents.PolicyDenied, Reason: "not here"}
	})
	w.refused("POST", "/agent/artifacts", "secret", nil, intents.PolicyDenied, "")
	if n := len(w.submits("artifact.put")); n != 1 {
		t.Fatalf("%d intents", n)
	}
	s.empty(t)
	w.refused("GET", "/agent/artifacts/"+intents.Digest([]byte("secret")), "", nil, intents.NotFound, "")
}

// TestLongMessage: a message in OpenAI's form that no intent can have is an artifact. Its plan has the
// beginning, and says where the whole is.
func TestLongMessage(t *testing.T) {
	var w *world
	s := &shelf{}
	w = newWorld(t, completing(&w), func(c *Config, _ *pace) { c.Artifacts = s })
	w.set(func(c *core) { c.shelf = s })
	long := strings.Repeat("é", maxLong/2)
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		resp := w.call("POST", path, `{"model":"planner","messages":[{"role":"user","content":"`+long+`"}],"input":"`+long+`"}`, bearer(), nil)
		opened := w.submits("plan.open")
		var args catalog.PlanOpen
		if err := json.Unmarshal(opened[len(opened)-1].Args(), &args); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
		ref := "cas://" + intents.Digest([]byte(long))
		if _, kept := s.m.Load("acme" + ref); !kept || len(args.Task) > maxMessage || !strings.HasPrefix(args.Task, "éé") || !strings.Contains(args.Task, "262144 bytes. The whole is the text "+ref) {
			t.Errorf("%s: kept %v, %s", path, kept, args.Task[len(args.Task)-300:])
		}
	}
	w.refusedOpenAI("POST", "/v1/responses", `{"model":"planner","input":"`+long+`x"}`, bearer(), intents.SchemaInvalid, "input")
}
