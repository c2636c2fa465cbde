package intents

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/plainjson/plainjsontest"
)

// TestReadRecorded: parts as the router writes them are read quickly and rightly;
// with a byte changed never otherwise than encoding/json reads them.
func TestReadRecorded(t *testing.T) {
	d := Decision{
		Verdict: Deny, Code: PolicyDenied, Pointer: "/a", Reason: "no <b>", PolicyIDs: []string{"x.y"}, Retryable: true, Hint: "ask \"ana\"",
		IntentID: "sha256:ab", Fingerprint: "sha256:cd", PolicyDigest: "sha256:ef", Catalog: "sha256:00", Directory: 17, Effect: "pure", Executor: "python",
	}
	sealed := Sealed{Header: "h", Payload: "{\"script\":\"a<b \\\\n é\x7f\u2028\"}", Sig: "s"}
	plainjsontest.Agree(t, d, quickDecision, true)
	plainjsontest.Agree(t, Decision{Verdict: Allow, Obligations: []Obligation{{Name: "mask", Value: "x"}}}, quickDecision, false)
	plainjsontest.Agree(t, sealed, quickSealed, false)
	sealed.Payload = strings.ReplaceAll(sealed.Payload, "\u2028", "")
	plainjsontest.Agree(t, sealed, quickSealed, true)
}

// TestReadRecordedSlowly: what is not plain is read by the decoder, and what is
// no such part is an error.
func TestReadRecordedSlowly(t *testing.T) {
	d := Decision{Verdict: Hold, Code: ApprovalRequired, Batch: &BatchRef{Index: 1}, IntentID: "sha256:ab"}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadDecision(raw)
	if diff := cmp.Diff(d, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	want := Sealed{Header: "h", Payload: `{"a":1}`, Sig: "s"}
	sealed, err := ReadSealed([]byte(` { "sig":"s", "payload":"{\"a\":1}", "header":"h" } `))
	if diff := cmp.Diff(want, sealed); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", "{", `{"header":1}`, `[]`} {
		if _, err := ReadSealed([]byte(bad)); err == nil {
			t.Errorf("%q is a sealed order", bad)
		}
		if _, err := ReadDecision([]byte(strings.Replace(bad, "header", "code", 1))); err == nil {
			t.Errorf("%q is a decision", bad)
		}
		if _, err := (Sealed{Payload: bad}).Body(); err == nil && bad != `{"header":1}` {
			t.Errorf("%q is an order", bad)
		}
	}
	b, err := Sealed{Payload: `{"actor":{"tenant":"é","user_id":"u"},"trace_id":"x"}`}.Body()
	if err != nil || b.Actor.Tenant != "é" || b.TraceID != "x" {
		t.Errorf("%+v %v", b, err)
	}
}

// TestRecordedBody: an order is read from its record as the decoder reads it, and
// nothing that is kept of it shares memory with the rest.
func TestRecordedBody(t *testing.T) {
	body := Body{
		Version: Version, Intent: Intent{Type: "skill.call", Args: json.RawMessage(`{"skill":"a"}`)}, TraceID: strings.Repeat("a", 32),
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
	plain, ok := readPlainBody(raw)
	if !ok {
		t.Fatal("the order is not plain")
	}
	got, err := Sealed{Payload: string(raw)}.Body()
	if diff := cmp.Diff(body, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	apart := plain.apart()
	clear(raw)
	if diff := cmp.Diff(body, apart); diff != "" {
		t.Errorf("shares memory: %s", diff)
	}
}
