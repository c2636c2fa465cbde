package agents

import (
	"fmt"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// TestDecide: the decision tree of request routing, branch by branch, with and without
// clarification, ambiguity, and open breakers.
func TestDecide(t *testing.T) {
	rules := map[string]RoutingRule{
		"front":    {Default: true},
		"password": {Threshold: 0.8, Clarify: true},
		"leave":    {Threshold: 0.5},
		"closed":   {Threshold: 1, Clarify: true},
		"anything": {Threshold: 0},
	}
	cases := []struct {
		named      string
		confidence float64
		ambiguous  bool
		clarify    bool
		open       string
		agent, why string
	}{
		{"nobody", 1, false, true, "", "front", catalog.RouteUnknown},
		{"", 1, false, true, "", "front", catalog.RouteUnknown},
		{"Password", 1, false, true, "", "front", catalog.RouteUnknown},
		{"nobody", 1, true, false, "", "front", catalog.RouteUnknown},
		{"nobody", 1, false, true, "front", "", ""},
		{"front", 1, false, true, "", "front", catalog.RouteDirect},
		{"front", 0, false, true, "", "front", catalog.RouteDirect},
		{"front", 0, true, true, "", "front", catalog.RouteDirect},
		{"front", 0.2, true, false, "", "front", catalog.RouteDirect},
		{"front", 1, false, true, "front", "", ""},
		{"password", 0.8, false, true, "", "password", catalog.RouteConfident},
		{"password", 0.9, false, false, "", "password", catalog.RouteConfident},
		{"password", 1, false, true, "", "password", catalog.RouteConfident},
		{"password", 0.79, false, true, "", "", catalog.RouteClarify},
		{"password", 0, false, true, "", "", catalog.RouteClarify},
		{"password", 0.9, true, true, "", "", catalog.RouteClarify},
		{"password", 0.79, false, false, "", "front", catalog.RouteDefault},
		{"password", 0.9, true, false, "", "front", catalog.RouteDefault},
		{"password", 0.1, true, false, "", "front", catalog.RouteDefault},
		{"password", 0.9, false, true, "password", "front", catalog.RouteBreaker},
		{"password", 0.1, true, true, "password", "front", catalog.RouteBreaker},
		{"password", 0.9, false, true, "leave", "password", catalog.RouteConfident},
		{"password", 0.9, false, true, "front", "password", catalog.RouteConfident},
		{"password", 0.1, false, true, "front", "", catalog.RouteClarify},
		{"password", 0.1, false, false, "front", "", ""},
		{"leave", 0.5, false, true, "", "leave", catalog.RouteConfident},
		{"leave", 0.5, false, false, "", "leave", catalog.RouteConfident},
		{"leave", 0.49, false, true, "", "front", catalog.RouteDefault},
		{"leave", 0.49, false, false, "", "front", catalog.RouteDefault},
		{"leave", 1, true, true, "", "front", catalog.RouteDefault},
		{"leave", 1, false, true, "leave", "front", catalog.RouteBreaker},
		{"leave", 0.1, false, true, "front", "", ""},
		{"closed", 1, false, true, "", "", catalog.RouteClarify},
		{"closed", 1, false, false, "", "front", catalog.RouteDefault},
		{"anything", 0, false, true, "", "anything", catalog.RouteConfident},
		{"anything", 0, true, true, "", "front", catalog.RouteDefault},
		{"anything", 1, false, false, "", "anything", catalog.RouteConfident},
		{"anything", 0, false, true, "anything", "front", catalog.RouteBreaker},
		{"closed", 1, true, true, "", "", catalog.RouteClarify},
		{"closed", 1, false, true, "closed", "front", catalog.RouteBreaker},
		{"password", 0.8, false, false, "front", "password", catalog.RouteConfident},
		{"leave", 0, false, true, "", "front", catalog.RouteDefault},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %v %v clarify %v open %s", c.named, c.confidence, c.ambiguous, c.clarify, c.open), func(t *testing.T) {
			said := catalog.Route{Agent: c.named, Confidence: c.confidence, Ambiguous: c.ambiguous}
			agent, why := Decide(rules, func(a string) bool { return a == c.open }, said, c.clarify)
			if agent != c.agent || why != c.why {
				t.Errorf("%q %q, want %q %q", agent, why, c.agent, c.why)
			}
		})
	}
	if agent, why := Decide(map[string]RoutingRule{"password": {Threshold: 0.5}}, func(string) bool { return false }, catalog.Route{Agent: "other"}, true); agent != "" || why != "" {
		t.Errorf("without a default: %q %q", agent, why)
	}
}
