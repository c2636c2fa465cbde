package policies

import (
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestHintsNameCommands: a hint of the built-in policy that needs an operator, or another person,
// gives the command to type: whoever is alone is the operator, too.
func TestHintsNameCommands(t *testing.T) {
	e := engine(t, Embedded())
	needed := 0
	for _, r := range e.Rules() {
		if !strings.Contains(r.Hint, "operator") && r.ID != "writ.approval.nobody" {
			continue
		}
		if needed++; !strings.Contains(r.Hint, "writ ") {
			t.Errorf("%s: %s", r.ID, r.Hint)
		}
	}
	if needed < 5 {
		t.Errorf("only %d hints are looked at", needed)
	}
	few := Result{Hold: []Rule{{ID: "x", Reason: "r", Count: 1}}}.DenyUnmet(func(intents.HoldRule) bool { return false })
	if len(few.Deny) != 1 || !strings.Contains(few.Deny[0].Hint, "writ user put NAME --role approver") || !strings.Contains(few.Deny[0].Hint, "writ apikey create NAME") {
		t.Errorf("%+v", few)
	}
}
