package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
)

const origin = "writ/test"

// signed is an operator's intent of a time, with the JWKS that verifies it.
func signed(t *testing.T, at time.Time) (intent, keys string) {
	t.Helper()
	s, err := intents.GenerateSigner(intents.RoleOperator)
	if err != nil {
		t.Fatal(err)
	}
	raw, _, err := intents.Sign(s, intents.Body{
		Version: intents.Version,
		Intent:  intents.Spec{Type: "cancel", Args: json.RawMessage(`{"plan_id":"plan_1"}`)}, Actor: intents.Actor{UserID: "bob", Tenant: "acme"},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(at), TTLSec: 60, Audience: origin, IdempotencyKey: "k"},
	})
	if err != nil {
		t.Fatal(err)
	}
	key := s.VerificationKey()
	key.Subject, key.Tenant = "bob", "acme"
	set, err := json.Marshal(intents.JWKS{Origin: origin, Version: 1, Keys: []intents.JWK{key.ToJWK()}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), file(t, "jwks.json", string(set))
}

func TestVerify(t *testing.T) {
	issued := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	intent, keys := signed(t, issued)
	_, others := signed(t, issued)
	tests := []struct {
		name, stdin, keys, at string
		code                  intents.Code
		pointer               string
	}{
		{"good", intent, keys, "", intents.OK, ""},
		{"good at its time", intent, keys, "2026-11-20T10:00:30Z", intents.OK, ""},
		{"too late", intent, keys, "2026-11-20T11:00:00Z", intents.ExpiredTTL, "/constraints/ttl_sec"},
		{"too early", intent, keys, "2026-11-20T09:00:00Z", intents.NotYetValid, "/constraints/issued_at"},
		{"changed", strings.Replace(intent, "plan_1", "plan_2", 1), keys, "", intents.SignatureInvalid, "/sig"},
		{"keys of others", intent, others, "", intents.KeyUnknown, "/sig"},
		{"not signed", "{}", keys, "", intents.SignatureInvalid, "/sig"},
		{"not an object", "[]", keys, "", intents.SchemaInvalid, ""},
		{"not JSON", "hello", keys, "", intents.SchemaInvalid, ""},
		{"nothing", "", keys, "", intents.SchemaInvalid, ""},
		{"too large", strings.Repeat("x", intents.MaxSize+1), keys, "", intents.PayloadTooLarge, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"intent", "verify", "-", "--keys", tt.keys}
			if tt.at != "" {
				args = append(args, "--at", tt.at)
			}
			want := ExitNo
			if tt.code == intents.OK {
				want = ExitOK
			}
			got := call{args: append(args, "--json"), stdin: tt.stdin}.run(t.Context())
			if got.code != want || got.err != "" {
				t.Fatalf("exit %d, stderr %q", got.code, got.err)
			}
			if d := cmp.Diff([]string{"code", "intent_id", "kid", "pointer", "reason", "valid"}, members(t, got.out)); d != "" {
				t.Errorf("members (-want +got):\n%s", d)
			}
			var v verdict
			if err := json.Unmarshal([]byte(got.out), &v); err != nil {
				t.Fatal(err)
			}
			if v.Code != tt.code || v.Valid != (want == ExitOK) || tt.pointer != "" && v.Pointer != tt.pointer || !v.Valid && v.Reason == "" {
				t.Errorf("%+v", v)
			}
			text := call{args: args, stdin: tt.stdin}.run(t.Context())
			if text.code != want || !strings.HasPrefix(text.out, map[bool]string{true: "valid sha256:", false: string(tt.code)}[v.Valid]) {
				t.Errorf("as text: exit %d: %q", text.code, text.out)
			}
		})
	}
}

// TestVerifyFile: a file and standard input are judged alike, and a time that is
// none is a usage error.
func TestVerifyFile(t *testing.T) {
	intent, keys := signed(t, time.Now())
	path := file(t, "intent.json", intent)
	if got := writ(t, "intent", "verify", path, "--keys", keys); got.code != ExitOK {
		t.Errorf("a file: exit %d, %q", got.code, got.err)
	}
	if got := (call{args: []string{"intent", "verify", "--keys", keys}, stdin: intent}).run(t.Context()); got.code != ExitOK {
		t.Errorf("no argument: exit %d, %q", got.code, got.err)
	}
	if got := writ(t, "intent", "verify", path, "--keys", keys, "--at", "noon"); got.code != ExitUsage || !strings.Contains(got.err, "noon") {
		t.Errorf("--at noon: exit %d, %q", got.code, got.err)
	}
}

// submitted has a router answer an intent with a status and a body.
func submitted(t *testing.T, status int, body string, args ...string) (got result, query string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent, err := io.ReadAll(r.Body); err != nil || string(sent) != "signed" || r.URL.Path != "/v1/intents" {
			t.Errorf("%s got %q", r.URL, sent)
		}
		query = r.URL.RawQuery
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	got = call{args: append([]string{"intent", "submit", "--url", s.URL}, args...), stdin: "signed"}.run(t.Context())
	return got, query
}

const (
	doneAnswer = `{"intent_id":"sha256:1","position":7,"code":"OK","decision":{"verdict":"allow","code":"OK"},"outcome":{"of":7,"attempt":1,"status":"done","code":"OK","duration_ms":1},"receipt":"r"}`
	heldAnswer = `{"intent_id":"sha256:1","position":7,"code":"APPROVAL_REQUIRED","reason":"two people","decision":{"verdict":"hold","code":"APPROVAL_REQUIRED"}}`
	refusal    = `{"type":"t","title":"t","status":403,"code":"POLICY_DENIED","detail":"no","hint":"ask","pointer":"/x","retryable":false,"intent_id":"sha256:1",
"trace_id":"2","policy_ids":["a.b"],"violations":[{"pointer":"/x","reason":"r"}]}`
)

func TestSubmit(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		code   int
		out    string
		err    string
	}{
		{"done", 200, doneAnswer, ExitOK, "OK sha256:1\n", ""},
		{"held", 202, heldAnswer, ExitNo, "APPROVAL_REQUIRED sha256:1\n", "APPROVAL_REQUIRED: two people"},
		{"refused", 403, refusal, ExitNo, "", "POLICY_DENIED: no (at /x); ask"},
		{"a proxy", 502, "<html>", ExitNo, "", "502 Bad Gateway"},
		{"not a router", 200, "<html>", ExitMalformed, "", "not an answer to an intent"},
		{"another API", 200, "{}", ExitMalformed, "", "not an answer to an intent"},
	}
	for _, tt := range tests {
		got, query := submitted(t, tt.status, tt.body)
		if got.code != tt.code || got.out != tt.out || !strings.Contains(got.err, tt.err) || tt.err == "" && got.err != "" || query != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, query %q", tt.name, got.code, got.out, got.err, query)
		}
	}
	if _, query := submitted(t, 200, doneAnswer, "--dry-run"); query != "dry_run=true" {
		t.Errorf("--dry-run asks with %q", query)
	}
}

// TestSubmitJSON: an answer is printed as it came; a refusal has the members of
// an answer.
func TestSubmitJSON(t *testing.T) {
	got, _ := submitted(t, 200, doneAnswer, "--json")
	if d := cmp.Diff([]string{"code", "decision", "intent_id", "outcome", "position", "receipt"}, members(t, got.out)); d != "" || got.code != ExitOK {
		t.Errorf("done: exit %d, members (-want +got):\n%s", got.code, d)
	}
	got, _ = submitted(t, 202, heldAnswer, "--json")
	if d := cmp.Diff([]string{"code", "decision", "intent_id", "position", "reason"}, members(t, got.out)); d != "" || got.code != ExitNo {
		t.Errorf("held: exit %d, members (-want +got):\n%s", got.code, d)
	}
	got, _ = submitted(t, 403, refusal, "--json")
	var have, want map[string]any
	if err := json.Unmarshal([]byte(got.out), &have); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"code":"POLICY_DENIED","reason":"no","hint":"ask","pointer":"/x","retryable":false,"intent_id":"sha256:1","trace_id":"2",
		"policy_ids":["a.b"],"violations":[{"pointer":"/x","reason":"r"}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, have); d != "" || got.code != ExitNo {
		t.Errorf("refused: exit %d (-want +got):\n%s", got.code, d)
	}
}
