package recorder

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// Facts of logs that were written before the router looked: what an executor had
// no business to say makes no event.
func TestReportedEvents(t *testing.T) {
	said := func(names ...string) []string {
		var out intents.Outcome
		for _, n := range names {
			out.Facts = append(out.Facts, intents.Fact{Event: n, Payload: json.RawMessage(`{}`)})
		}
		out.Status = intents.Done
		var got []string
		for _, e := range outcomeEvents(state.Order{Type: names[0]}, intents.Outcome{Status: out.Status, Facts: out.Facts[1:]}, nil, nil) {
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
