package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
)

// TestSentence: the operator's summary with the values of the input, or what the intent is called.
func TestSentence(t *testing.T) {
	call, ask := catalog.Row{Type: "skill.call", Title: "Call a skill"}, catalog.Row{Type: "approval.ask", Title: "Ask people"}
	long := strings.Repeat("ä", 100)
	args := json.RawMessage(`{"skill":"shop.refund","input":{"order":"O-5001","amount":1299.00,"of":{"name":"Ana"},"none":null,"long":"` + long + `"}}`)
	for _, tt := range []struct {
		row           catalog.Row
		args          json.RawMessage
		summary, want string
	}{
		{call, args, "Refund order {order}: {amount} EUR to {of.name}.", "Refund order O-5001: 1299.00 EUR to Ana."},
		{call, args, "{of} {none} {missing} {order.x} {", `{"name":"Ana"} null (no missing) (no order.x) {`},
		{call, args, "{long}", long[:160] + "…"},
		{call, json.RawMessage(`{"skill":"shop.refund"}`), "Refund {order}", "Refund (no order)"}, // a rule masks the input
		{call, args, "", "Call shop.refund"},
		{call, json.RawMessage(`{}`), "", "Call a skill"},
		{ask, json.RawMessage(`{"title":"Which?"}`), "", "Which?"},
		{ask, json.RawMessage(`[]`), "", "Ask people"},
	} {
		if got := catalog.Sentence(tt.row, tt.args, tt.summary); got != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.row.Type, tt.summary, got, tt.want)
		}
	}
	if got := catalog.Placeholders("{a} {b.c} {} {d e}"); !cmp.Equal(got, []string{"a", "b.c"}) {
		t.Errorf("placeholders: %v", got)
	}
}
