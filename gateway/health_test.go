package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/state/agents"
)

// fakeRegistry is a Registry of tenant acme.
type fakeRegistry struct{ blobs, breaker string }

func (fakeRegistry) SkillDocuments(context.Context, string) ([]agents.SkillDocument, error) {
	return agents.SkillDocuments(), nil
}

func (k fakeRegistry) Look(_ context.Context, tenant string) (Deep, error) {
	breaker := bus.Breaker{Server: "crm", Status: k.breaker, Failures: 5}
	return Deep{
		Stores: map[string]string{"journal": Up, "blobs": k.blobs}, Agents: []AgentHealth{{Name: "of-" + tenant, Kind: Remote, Endpoint: "a.example", Breaker: &breaker}},
		Breakers: []bus.Breaker{breaker},
	}, nil
}

// TestDeepHealth: the stores, and the agents and breakers of the key's tenant.
func TestDeepHealth(t *testing.T) {
	for _, tt := range []struct{ blobs, breaker, status string }{{Up, "closed", Up}, {Down, "closed", Degraded}, {Up, "open", Degraded}} {
		is := fakeRegistry{tt.blobs, tt.breaker}
		w := newWorld(t, nil, func(c *Config, _ *pace) { c.Registry = is })
		var got Deep
		w.call("GET", "/health/deep", "", nil, &got)
		want, _ := is.Look(t.Context(), "acme")
		want.Status, want.Bus = tt.status, Up
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

// TestHealthHere: a caller on the node's machine needs no key, and gets names and states of the
// agents. A request that may have come from elsewhere needs one.
func TestHealthHere(t *testing.T) {
	keyless := http.Header{"X-Api-Key": nil}
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.Registry, c.RateLimit = fakeRegistry{Up, "open"}, 20 })
	for range 50 { // a probe repeats its request
		var got json.RawMessage
		w.call("GET", "/health/deep", "", keyless, &got)
		if want := `{"agents":[{"agent_id":"of-default","status":"open"}]}`; string(got) != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	for name, value := range map[string]string{
		"X-Api-Key": "nobody", "Authorization": "Bearer nobody", "Forwarded": "for=192.0.2.1", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "writ.example",
		"X-Real-Ip": "192.0.2.1", "Via": "1.1 proxy", "Origin": "https://page.example",
	} {
		header := maps.Clone(keyless)
		header[name] = []string{value}
		w.refused("GET", "/health/deep", "", header, intents.Unauthorized, "")
	}
	w = newWorld(t, nil, func(c *Config, _ *pace) { c.Registry, c.PublicURL = fakeRegistry{}, "https://writ.example" })
	w.refused("GET", "/health/deep", "", keyless, intents.Unauthorized, "")
}

// TestOnlyHere: both ends of the connection and the requested host name are this machine.
func TestOnlyHere(t *testing.T) {
	for _, tt := range []struct {
		to, from, host string
		want           bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:40000", "localhost:8080", true},
		{"[::1]:8080", "[::1]:40000", "[::1]:8080", true},
		{"10.0.0.1:8080", "127.0.0.1:40000", "localhost:8080", false},
		{"127.0.0.1:8080", "10.0.0.2:40000", "localhost:8080", false},
		{"127.0.0.1:8080", "127.0.0.1:40000", "rebound.example:8080", false},
		{"", "127.0.0.1:40000", "localhost", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/health/deep", nil)
		r.RemoteAddr, r.Host = tt.from, tt.host
		if at, err := net.ResolveTCPAddr("tcp", tt.to); err == nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
		}
		if got := (&Gateway{}).onlyHere(r); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestSkills: documents of skills are listed, and read by id.
func TestSkills(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.Registry = fakeRegistry{} })
	var all, one []skillDocument
	w.call("GET", "/skills/", "", nil, &all)
	if len(all) != len(agents.SkillDocuments()) || all[0].Content != "" || all[0].Capability == "" {
		t.Errorf("%+v", all)
	}
	w.call("GET", "/skills/?id=routing", "", nil, &one)
	if len(one) != 1 || one[0].ID != "routing" || len(one[0].Content) < 500 || one[0].Tools[0].Name != "ask_agent" {
		t.Errorf("%+v", one)
	}
}
