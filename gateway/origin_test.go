package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMCPOrigin: pages of other sites, and foreign names that resolve to this machine, get no
// access; the server never repeats a stranger's text as its address.
func TestMCPOrigin(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.PublicURL = "https://writ.example" })
	own := strings.TrimPrefix(w.http.URL, "http://")
	for _, tt := range []struct {
		host, origin string
		refused      bool
	}{
		{own, "", false},
		{own, "http://" + own, false},
		{own, "http://localhost:6274", false}, // another program of this machine
		{"localhost", "http://[::1]:3000", false},
		{"writ.example", "", false},
		{"WRIT.example", "https://writ.example", false},
		{"evil.example", "", true},
		{"evil.example", "http://evil.example", true},
		{"writ.example.evil.example", "", true},
		{own + ".evil.example", "", true},
		{"127.0.0.1:.evil.example", "", true},
		{own, "https://evil.example", true},
		{own, "http://localhost.evil.example", true},
		{own, "http://127.0.0.1.evil.example", true},
		{own, "http://localhost@evil.example", true},
		{own, "null", true},
		{own, "file://", true},
		{own, "chrome-extension://localhost", true},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			r, err := http.NewRequestWithContext(t.Context(), method, w.http.URL+routeMCP, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			r.Header.Set("X-Api-Key", "writ_wrong")
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			want := http.StatusUnauthorized
			if tt.refused {
				want = http.StatusForbidden
			}
			if resp.StatusCode != want && resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s to %s from %q: HTTP %d", method, tt.host, tt.origin, resp.StatusCode)
			}
			if said := resp.Header.Get("WWW-Authenticate"); strings.Contains(said, "evil") || said != "" && !strings.Contains(said, `"https://writ.example/.well-known/`) {
				t.Errorf("%s: %s", tt.host, said)
			}
		}
	}
}

// TestPublicURL: held links, metadata and paths that clients are sent to begin with public_url, in every
// spelling of its host.
func TestPublicURL(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.PublicURL = "https://writ.example/gate" })
	for _, path := range []string{"", "/mcp", "/gate/mcp"} {
		r, got := httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource"+path, nil), httptest.NewRecorder()
		if w.gateway.Handler().ServeHTTP(got, r); !strings.Contains(got.Body.String(), `"resource":"https://writ.example/gate/mcp"`) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	for host, want := range map[string]bool{"writ.example": true, "WRIT.example:443": true, "writ.example:80": false, "writ.example:8443": false, "": false} {
		if w.gateway.isPublic(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
	if resp := w.call("POST", "/agent/run", `{"message":"hi"}`, nil, new(any)); resp.Header.Get("Location") != "" && !strings.HasPrefix(resp.Header.Get("Location"), "/gate/agent/plans/") {
		t.Error(resp.Header)
	}
}

// TestMachinePages: pages that this machine serves may call /mcp of a writ of this machine, which is
// where inspectors are, and no other route.
func TestMachinePages(t *testing.T) {
	w := httptest.NewServer(newWorld(t, nil).gateway.Handler())
	defer w.Close()
	for _, c := range []struct {
		path, host, origin string
		shared             bool
	}{
		{routeMCP, "", "http://localhost:6274", true},
		{"/.well-known/oauth-protected-resource/mcp", "", "http://127.0.0.1:6274", true},
		{routeMCP, "evil.example", "http://localhost:6274", false},
		{routeMCP, "", "http://localhost.evil.example", false},
		{routeMCP, "", "null", false},
		{"/agent/run", "", "http://localhost:6274", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, w.URL+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		r.Header = http.Header{"Origin": {c.origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"mcp-session-id"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Access-Control-Allow-Origin"); (got == c.origin) != c.shared || (resp.Header.Get("Access-Control-Allow-Headers") != "") != c.shared {
			t.Errorf("%+v: %s %v", c, resp.Status, resp.Header)
		}
	}
}

// TestBaseURL: without public_url, the name in Host is repeated only if it is an address.
func TestBaseURL(t *testing.T) {
	w := newWorld(t, nil)
	own := strings.TrimPrefix(w.http.URL, "http://")
	for host, want := range map[string]string{own: own, "evil.example": own, "192.0.2.7:8080": "192.0.2.7:8080", "localhost:80": "localhost:80", "a\"b": own} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.http.URL+"/.well-known/oauth-protected-resource/mcp", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			continue // the client refuses such a name
		}
		body := make([]byte, 500)
		n, _ := resp.Body.Read(body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK && !strings.Contains(string(body[:n]), `"http://`+want+`/mcp"`) {
			t.Errorf("%s: %s", host, body[:n])
		}
	}
}
