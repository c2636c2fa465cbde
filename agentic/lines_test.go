package agentic

import (
	"regexp"
	"strings"
	"testing"
)

// TestLinesOfAgents: every line names the agent that wrote it, its action and the duration. Lines
// of working agents name the agent itself, and each call is a line.
func TestLinesOfAgents(t *testing.T) {
	c := newCore(t)
	asking(c, hub, others)
	m := says(map[string][]any{
		"hub":  {ask("shop", "Offers?"), "Ten percent off."},
		"shop": {call("crm_list", struct{}{}), "Ten percent."},
	})
	_, log := played(c, m)
	who := regexp.MustCompile(` agent_id=(\S+) action=(\S+) duration_ms=\d+`)
	did := map[string]bool{}
	for line := range strings.Lines(log) {
		said := who.FindStringSubmatch(line)
		if said == nil || !strings.Contains(line, " request_id="+theTurn.TraceID+" ") {
			t.Errorf("who did what in which request: %s", line)
			continue
		}
		if strings.Contains(line, "msg=agent.action") {
			did[said[1]+" "+said[2]] = true
		}
	}
	if !did["hub ask_shop"] || !did["shop crm_list"] {
		t.Errorf("actions %v in\n%s", did, log)
	}
}
