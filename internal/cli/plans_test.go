package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// A plan whose step waits until it is known what a call did says which call, and what to type.
func TestPlanWaits(t *testing.T) {
	p := catalog.PlanView{
		Steps: []catalog.StepView{{PlanStep: catalog.PlanStep{Step: 1, Task: "close them"}, Status: catalog.StepPendingApproval}},
		IntentHistory: []catalog.PastIntent{
			{Step: 1, IntentID: "sha256:1", Type: "skill.call", Args: json.RawMessage(`{"skill":"crm.close","input":{"id":4}}`), Status: "indeterminate"},
			{Step: 1, IntentID: "sha256:2", Type: "skill.call", Args: json.RawMessage(`{"skill":"crm.close","input":{"id":5}}`), Status: "held"},
		},
	}
	want := `waits     until it is known whether skill.call {"skill":"crm.close","input":{"id":4}} happened: look, then writ intent resolve sha256:1 done|failed --reason TEXT`
	if text := render("plan", p); !strings.Contains(text, "\n"+want+"\n") || strings.Count(text, "waits") != 1 {
		t.Errorf("%s", text)
	}
	p.Steps[0].Status = catalog.StepRunning
	if text := render("plan", p); strings.Contains(text, "waits") {
		t.Errorf("while it runs: %s", text)
	}
}
