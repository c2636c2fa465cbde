package audit

import (
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// TestReplayRemembersItsOwn: the engines of replay and backtest evaluate each distinct question once, over
// the data of each tenant, and so find a wrong cache entry of a router; of all decisions one of 64 is
// evaluated once more.
func TestReplayRemembersItsOwn(t *testing.T) {
	base, err := policies.New(policies.Embedded())
	if err != nil {
		t.Fatal(err)
	}
	r := newReplayer(base)
	for i, tenant := range []string{"acme", "globex"} {
		var e *policies.Engine
		for range 2 {
			if e, err = r.engine("", state.New().Directory().Tenant(tenant)); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Decide(t.Context(), map[string]any{"intent": map[string]any{"type": "plan"}}); err != nil {
				t.Fatal(err)
			}
		}
		if hits, misses := e.MemoStats(); hits != int64(i+1) || misses != int64(i+1) {
			t.Errorf("%d remembered, %d evaluated", hits, misses)
		}
	}
	again := 0
	for position := range int64(64_000) {
		if sampled(position) {
			again++
		}
	}
	if again < 800 || again > 1200 {
		t.Errorf("%d of 64,000 are evaluated again", again)
	}
}

// TestReplayFindsWrongMemory: a result that an engine remembers wrongly is found in the sample, and
// nowhere else.
func TestReplayFindsWrongMemory(t *testing.T) {
	engine, err := policies.New(policies.Embedded())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := intents.GenerateSigner(intents.RoleTask)
	if err != nil {
		t.Fatal(err)
	}
	raw, _, err := intents.Sign(signer, intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: "skill.call", Args: json.RawMessage(`{"input":{},"skill":"a.b"}`)},
		Actor: intents.Actor{UserID: "ana", Tenant: "acme"},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(time.Now()), TTLSec: 120, Audience: "writ/test", IdempotencyKey: "k",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := intents.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q := intents.Question{Envelope: u.AsRecorded()}
	right, broken, err := consistent(t.Context(), engine, q, true)
	if err != nil || broken || len(right.Deny) == 0 {
		t.Fatalf("%+v, broken %t, %v", right, broken, err)
	}
	right.Deny[0].Reason = "another" // the engine remembers this slice
	if _, _, err := consistent(t.Context(), engine, q, false); err != nil {
		t.Errorf("outside the sample: %v", err)
	}
	if _, _, err := consistent(t.Context(), engine, q, true); err == nil {
		t.Error("a wrong memory is not found")
	}
}
