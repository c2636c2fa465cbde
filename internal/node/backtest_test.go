package node

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents/catalog"
)

// TestBacktestOfATenant: a text that a tenant tries decides as it would, asks for no other
// tenant's data, and takes neither memory nor time of the process.
func TestBacktestOfATenant(t *testing.T) {
	n := open(t, config(t.TempDir()))
	run(t, n)
	must(t, n.operator(t.Context(), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.secret", Value: json.RawMessage(`"hunter2"`)}}))
	const head = `package writ.ext.tried

# METADATA
# title: Tried
# description: It is tried.
# custom:
#   id: tried
deny contains {"id": "tried", "reason": "It is tried."} if {
`
	tried := func(body string) consoleapi.Backtest {
		t.Helper()
		out, err := n.consoleAPI().Backtest(t.Context(), "system", consoleapi.Trial{File: "ext/tried/tried.rego", Text: head + "\t" + body + "\n}\n"})
		must(t, err)
		return out
	}
	if b := tried("input.intent.type"); b.Refused != "" || b.Records == 0 || b.Flipped == 0 {
		t.Errorf("a rule that denies all: %+v", b)
	}
	if b := tried(`data.directory.tenants["default"]["x.secret"]`); b.Refused != "" || b.Records == 0 || b.Flipped != 0 {
		t.Errorf("a rule that reads another tenant's data: %+v", b)
	}
	if b := tried("a := numbers.range(1, 20000000)\n\tcount([x | some x in a; some y in a; x < y]) > 0"); !strings.Contains(b.Refused, "the policy took more than") {
		t.Errorf("a rule that takes all memory: %+v", b)
	}
	if b := tried(strings.Repeat("[", 50_000)); !strings.Contains(b.Refused, "nested too deeply") {
		t.Errorf("a rule that is nested: %.300s", b.Refused)
	}
}
