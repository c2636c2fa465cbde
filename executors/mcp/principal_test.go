package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

// TestPrincipalProof: a server that shares a key can check for whom a call is, and writ
// for whom the answer is. The key itself is sent nowhere.
func TestPrincipalProof(t *testing.T) {
	mac := func(text string) string {
		h := hmac.New(sha256.New, []byte("a key that both of them share"))
		h.Write([]byte(text))
		return hex.EncodeToString(h.Sum(nil))
	}
	src := self(t)
	src.PrincipalKey = []byte("a key that both of them share")
	res, err := dial(t, src, quick()).Call(t.Context(), "echo", nil, CallMeta{IntentID: "sha256:1", Principal: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	var seen struct{ Meta map[string]string }
	if err := json.Unmarshal(res.Data, &seen); err != nil || seen.Meta["aob.dev/principal_hmac"] != mac("writ-call-v1\nsha256:1\nana") {
		t.Errorf("sent %s, error %v", res.Data, err)
	}
	if strings.Contains(string(res.Data), "both of them") {
		t.Error("the key was sent")
	}
	answer := mac("writ-answer-v1\nsha256:1\nana")
	if res.Proof != answer {
		t.Errorf("the answer must have %s, not %s", res.Proof, answer)
	}
	m := &Manifest{Name: "orders", OutputSchema: json.RawMessage(envelopeSchema)}
	envelope := func(proof string) []byte {
		return []byte(`{"status":"ok","payload":1,"domain_type":"d","enricher_id":"e","principal":"ana"` + proof + `}`)
	}
	if _, err := m.Unwrap(envelope(`,"principal_hmac":"`+answer+`"`), "ana", res.Proof); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", `,"principal_hmac":null`, `,"principal_hmac":"` + seen.Meta["aob.dev/principal_hmac"] + `"`} {
		_, err := m.Unwrap(envelope(bad), "ana", res.Proof)
		wantKind(t, err, ErrPrincipal)
	}
}
