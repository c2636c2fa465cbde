package node

import (
	"testing"

	"aob.dev/writ/internal/demo/quakes"
)

// TestCellSkillsBesideRouter: a process that follows the record and has no operator's key starts, approves
// no skill, not even one that reads and whose server is trusted, and says how an operator does.
func TestCellSkillsBesideRouter(t *testing.T) {
	c := newCell(t, "a")
	feed, err := quakes.Serve(t.Context())
	must(t, err)
	cfg := c.config("a", "router", "executor:skills")
	c.begin(c.config("a", "router"))
	recorder := c.process(c.config("a", "recorder"))
	cfg.Cluster.Recorders = []string{recorder.url()}
	cfg.Skills = []string{"name=quakes trust=true -- " + feed}
	said := newMessages()
	cfg.Log = said.logger()
	n := c.process(cfg)
	if pins := n.directory.View().Pins("default"); len(pins) != 0 {
		t.Errorf("approved without an operator: %v", pins)
	}
	if said.count("skill is refused until this version is approved") == 0 {
		t.Error("it does not say what is to be approved")
	}
}
