package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/internal/upkeep"
)

// TestFindings: writ up waits for no model, and tells what a late one says when it does.
func TestFindings(t *testing.T) {
	m := &models{list: []namedModel{{"strong", "a", offline.Model{}}, {"spare", "b", offline.Model{}}}}
	probe := make(chan upkeep.Finding, 2)
	early, late := upkeep.Finding{Check: "model:spare", Found: "early"}, upkeep.Finding{Check: "model:strong", Found: "late"}
	asked := upkeep.Finding{Check: "model:strong", Level: upkeep.OK, Found: "offline:lexical at a is being asked what it takes"}
	probe <- early
	wait := make(chan time.Time)
	go func() { wait <- time.Time{} }()
	got := m.findings(probe, wait)
	if len(probe) == 1 { // the end of the wait may come first
		early = m.list[1].asked()
	}
	if d := cmp.Diff([]upkeep.Finding{asked, early}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	probe = make(chan upkeep.Finding, 2)
	probe <- late
	probe <- early
	if d := cmp.Diff([]upkeep.Finding{late, early}, m.findings(probe, nil)); d != "" {
		t.Errorf("all are there (-want +got):\n%s", d)
	}
}
