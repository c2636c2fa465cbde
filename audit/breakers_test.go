package audit_test

import (
	"bytes"
	"strings"
	"testing"

	"aob.dev/writ/audit"
)

// noCalls denies every call of a skill.
const noCalls = `package writ.ext.strict

# METADATA
# title: No calls
# description: Skills are off.
# custom:
#   id: strict.call
deny contains {"id": "strict.call", "reason": "Skills are off.", "hint": ""} if input.intent.type == "skill.call"
`

// TestBreakersAreBelieved: what a breaker has refused is not judged again, neither by a replay nor by
// another policy.
func TestBreakersAreBelieved(t *testing.T) {
	d := &dishonest{world: newWorld(t)}
	d.broken()
	bundle := d.export(d.Journal, audit.Selection{})
	r, err := audit.Verify(t.Context(), bytes.NewReader(bundle), audit.Options{Trust: d.trust(), Replay: true})
	d.Must(err)
	why := 0
	for text, n := range r.Why {
		if strings.Contains(text, "DISPATCH_UNAVAILABLE") {
			why += int(n)
		}
	}
	if !r.OK || why != 1 {
		t.Errorf("%v: %+v", r.FirstBad, r)
	}
	b, err := audit.BacktestBundle(t.Context(), bytes.NewReader(bundle), audit.Trial{New: d.with("ext/strict.rego", func(string) string { return noCalls })})
	d.Must(err)
	calls := 0
	for _, x := range b.Flips {
		if x.Type == "skill.call" && x.Before == "allow" {
			calls++
		}
	}
	if calls != 5 {
		t.Errorf("%d flips of the five calls that were sent: %+v", calls, b.Flips)
	}
}
