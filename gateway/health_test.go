package gateway

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
)

// looked is a Registry of tenant acme.
type looked struct{ blobs, breaker string }

func (looked) SkillDocuments(context.Context, string) ([]agents.SkillDocument, error) {
	return agents.SkillDocuments(), nil
}

func (k looked) Look(_ context.Context, tenant string) (Deep, error) {
	return Deep{
		Stores: map[string]string{"journal": Up, "blobs": k.blobs}, Agents: []AgentHealth{{Name: "of-" + tenant, Kind: Remote, Endpoint: "a.example"}},
		Breakers: []bus.Breaker{{Server: "crm", Status: k.breaker, Failures: 5}},
	}, nil
}

// TestDeepHealth: the stores, and the agents and breakers of the key's tenant.
func TestDeepHealth(t *testing.T) {
	for _, tt := range []struct{ blobs, breaker, status string }{{Up, "closed", Up}, {Down, "closed", Degraded}, {Up, "open", Degraded}} {
		is := looked{tt.blobs, tt.breaker}
		w := newWorld(t, nil, func(c *Config, _ *pace) { c.Registry = is })
		var got Deep
		w.call("GET", "/health/deep", "", nil, &got)
		want, _ := is.Look(t.Context(), "acme")
		want.Status, want.Bus = tt.status, Up
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		w.refused("GET", "/health/deep", "", map[string][]string{"X-Api-Key": nil}, intents.Unauthorized, "")
	}
}

// TestSkills: documents of skills are listed, and read by id.
func TestSkills(t *testing.T) {
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.Registry = looked{} })
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
