package intents

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadRecorded: parts are read in any spelling, and anything else
// is an error.
func TestReadRecorded(t *testing.T) {
	d := Decision{Verdict: Hold, Code: ApprovalRequired, Batch: &BatchRef{Index: 1}, IntentID: "sha256:ab"}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadDecision(raw)
	if diff := cmp.Diff(d, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	want := Signed{Header: "h", Payload: `{"a":1}`, Sig: "s"}
	signed, err := ReadSigned([]byte(` { "sig":"s", "payload":"{\"a\":1}", "header":"h" } `))
	if diff := cmp.Diff(want, signed); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", "{", `{"header":1}`, `[]`} {
		if _, err := ReadSigned([]byte(bad)); err == nil {
			t.Errorf("%q is a signed intent", bad)
		}
		if _, err := ReadDecision([]byte(strings.Replace(bad, "header", "code", 1))); err == nil {
			t.Errorf("%q is a decision", bad)
		}
		if _, err := (Signed{Payload: bad}).Body(); err == nil && bad != `{"header":1}` {
			t.Errorf("%q is an intent", bad)
		}
	}
	for _, bad := range []string{`null`, `"a"`, `{"actor":1}`, `{"actor":{"tenant":1}}`, `{"constraints":{"ttl_sec":1.5}}`, `{"context":[]}`, `{"context":{"labels":{"a":1}}}`, `{"a": 1}`} {
		if _, err := (Signed{Payload: bad}).Body(); err == nil {
			t.Errorf("%q is an intent", bad)
		}
	}
	b, err := Signed{Payload: `{"actor":{"tenant":"é","user_id":"u"},"trace_id":"x"}`}.Body()
	if err != nil || b.Actor.Tenant != "é" || b.TraceID != "x" {
		t.Errorf("%+v %v", b, err)
	}
}

// TestRecordedBody: an envelope is read from its record as the decoder reads it, and
// nothing retained of it shares memory with the rest.
func TestRecordedBody(t *testing.T) {
	body := Body{
		Version: Version, Intent: Spec{Type: "skill.call", Args: json.RawMessage(`{"skill":"a"}`)}, TraceID: strings.Repeat("a", 32),
		Actor:       Actor{UserID: "u", Tenant: "acme", Roles: []string{"user", "auditor"}, Grant: "a.b.c"},
		Constraints: Constraints{IssuedAt: "2026-11-20T10:00:00.000Z", TTLSec: 120, Audience: "writ/x", IdempotencyKey: "k", Capabilities: []string{"skills:call"}},
		Context: &Context{
			SessionID: "s", TurnID: "t", PlanID: "p", Revision: 1, Step: 2, TaskID: "task", RunID: "r", NodeID: "n", Cause: "sha256:" + strings.Repeat("0", 64),
			Agent: &Agent{Name: "a", Digest: "sha256:" + strings.Repeat("1", 64)}, Labels: map[string]string{"l": "v"},
		},
	}
	raw, err := json.Marshal(body)
	if err == nil {
		raw, err = Canonical(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := Signed{Payload: string(raw)}.Body()
	if diff := cmp.Diff(body, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	apart, err := readApart(string(raw))
	clear(raw)
	if diff := cmp.Diff(body, apart); diff != "" || err != nil {
		t.Errorf("shares memory: %v %s", err, diff)
	}
}
