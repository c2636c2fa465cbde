package recorder

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// An event that an executor may not report is not written, even if the log has it.
func TestReportedEvents(t *testing.T) {
	said := func(names ...string) []string {
		var out intents.Outcome
		for _, n := range names {
			out.Events = append(out.Events, intents.ReportedEvent{Event: n, Payload: json.RawMessage(`{}`)})
		}
		out.Status = intents.Done
		var got []string
		for _, e := range outcomeEvents(state.Intent{Type: names[0]}, intents.Outcome{Status: out.Status, Events: out.Events[1:]}, nil, nil) {
			got = append(got, e.typ)
		}
		return got
	}
	for _, c := range []struct{ said, want []string }{
		{[]string{"skill.call", "skill.called", "approval.decided", "x.acme.said"}, []string{"skill.called"}},
		{[]string{"x.acme.echo", "approval.decided", "skill.called", "x.acme.said", "x.acme-billing.paid", "x.globex.said"}, []string{"x.acme.said", "x.acme-billing.paid"}},
		{[]string{"unheard.of", "unheard.of", "x.acme.said"}, nil},
	} {
		if d := cmp.Diff(c.want, said(c.said...)); d != "" {
			t.Errorf("%s: %s", c.said[0], d)
		}
	}
}
