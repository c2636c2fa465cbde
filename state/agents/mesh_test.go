package agents

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestMeshFile: the example of a mesh's documentation is a valid agent, with its endpoint from
// the environment, or by default on this machine, which the operator has listed. Only a default
// agent is missing.
func TestMeshFile(t *testing.T) {
	text, err := os.ReadFile("testdata/mesh/my-agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{"my-agent.yaml": {Data: text}}
	for value, endpoint := range map[string]string{"": "http://localhost:8081", "https://my-agent.example": "https://my-agent.example"} {
		r, err := Read(dir, func(name string) string { return map[string]string{"MY_AGENT_ENDPOINT": value}[name] }, "localhost:8081")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(); err == nil || err.Error() != "my-agent.yaml:10: /is_default: no agent is the default: set is_default of one, with confidence_threshold 0" {
			t.Errorf("a set without a default: %v", err)
		}
		want := &Agent{
			Type: "mcp", Name: "my-agent", DisplayName: "My Agent", Endpoint: endpoint, Limits: Limits{}.withDefaults(),
			Description: "Detailed description of agent capabilities. This text is injected verbatim into the Gemini classifier prompt, so be specific about what this agent handles and what it doesn't.",
			Routing: &Routing{
				RoutingRule:          RoutingRule{Threshold: 0.7},
				ClarificationContext: "I can help you with X, Y, and Z. What specifically do you need?",
				Examples:             []string{"Example query that should route to this agent", "Another query this agent should handle", "A third example showing the agent's domain"},
			},
		}
		if d := cmp.Diff(want, r.Agents[0].Agent); d != "" {
			t.Error(d)
		}
	}
}
