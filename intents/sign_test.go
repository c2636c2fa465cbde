package intents

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testBody() Body {
	return Body{
		Version: Version,
		Intent:  Spec{Type: "skill.call", Args: json.RawMessage(`{"skill":"feed","input":{"q":"<a> & \u00e4","n":1.0}}`)},
		Actor:   Actor{UserID: "ana", Tenant: "default", Grant: vectorGrant(unchanged)},
		Constraints: Constraints{
			IssuedAt: FormatTime(vectorNow), TTLSec: 120, Audience: vectorOrigin,
			IdempotencyKey: "k1", Capabilities: []string{"skills:call"},
		},
		Context: &Context{SessionID: "s", TurnID: "t", PlanID: "plan_1", Revision: 1, Step: 2, TaskID: "task_2", Labels: map[string]string{"team": "x"}},
		TraceID: strings.Repeat("0a", 16),
	}
}

// testEnvelope is testBody, signed by a task and read again.
func testEnvelope(t *testing.T) (raw []byte, id string, u *Unverified) {
	t.Helper()
	raw, id, err := Sign(vTask, testBody())
	if err == nil {
		u, err = Parse(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw, id, u
}

func testVerifier() Verifier {
	return Verifier{Keys: ring(vectorKeys()...), Origin: vectorOrigin, Now: vectorNow}
}

func TestSignParseVerify(t *testing.T) {
	raw, id, u := testEnvelope(t)
	if u.ID() != id || u.KID() != vTask.KID || u.TraceID() != testBody().TraceID || !bytes.Equal(u.Bytes(), raw) {
		t.Errorf("id %s kid %s, want %s %s", u.ID(), u.KID(), id, vTask.KID)
	}
	e, err := u.Verify(testVerifier())
	if err != nil {
		t.Fatal(err)
	}
	if e.ID() != id || e.Type() != "skill.call" || e.Signer().Role != RoleTask || e.TTL() != 2*time.Minute || !e.IssuedAt().Equal(vectorNow) {
		t.Errorf("envelope %s %s by %s", e.ID(), e.Type(), e.Signer().Role)
	}
	if got, want := string(e.Args()), `{"input":{"n":1,"q":"<a> & ä"},"skill":"feed"}`; got != want {
		t.Errorf("args %s, want %s", got, want)
	}
	want := Principal{UserID: "ana", Tenant: "default", Roles: []string{"user", "auditor"}, Session: "s"}
	if diff := cmp.Diff(want, e.Principal()); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
	opened, err := e.Signed().Open()
	if err != nil || opened.ID() != id {
		t.Errorf("opened: %v", err)
	}
}

// TestEveryChangedByteIsRefused: no byte of an envelope is free.
func TestEveryChangedByteIsRefused(t *testing.T) {
	raw, _, err := Sign(vTask, testBody())
	if err != nil {
		t.Fatal(err)
	}
	v := testVerifier()
	for i := range raw {
		for _, flip := range []byte{1, 0x20} {
			changed := bytes.Clone(raw)
			changed[i] ^= flip
			u, err := Parse(changed)
			if err != nil {
				continue
			}
			if _, err := u.Verify(v); err == nil {
				t.Errorf("byte %d: %q for %q passes", i, changed[i], raw[i])
			}
		}
	}
}

func TestSignRefusesLikeRouter(t *testing.T) {
	b := testBody()
	b.Constraints.TTLSec = 301
	b.Actor.UserID = "a b"
	_, _, err := Sign(vTask, b)
	var r *Refusal
	if !errors.As(err, &r) || r.Code != SchemaInvalid {
		t.Fatal(err)
	}
	var pointers []string
	for _, v := range r.Violations {
		pointers = append(pointers, v.Pointer)
	}
	if diff := cmp.Diff([]string{"/actor/user_id", "/constraints/ttl_sec"}, pointers); diff != "" {
		t.Errorf("pointers (-want +got):\n%s", diff)
	}
	if r.Pointer != "/actor/user_id" {
		t.Errorf("refusal %v", r)
	}
}

func TestOpenRefusesPayloadsThatAreNotCanonical(t *testing.T) {
	raw, _, err := Sign(vTask, testBody())
	if err != nil {
		t.Fatal(err)
	}
	u, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	s := Signed{Header: u.header, Payload: " " + string(u.canonical), Sig: u.sig}
	if _, err := s.Open(); CodeOf(err) != SchemaInvalid {
		t.Errorf("white space: %v", err)
	}
}

// TestFingerprint: it depends on what is requested, not on who requests it or how.
func TestFingerprint(t *testing.T) {
	base := testBody()
	print := func(change func(b *Body)) string {
		b := testBody()
		c := *b.Context
		b.Context = &c
		change(&b)
		return Fingerprint(b.Intent, b.Actor.UserID, *b.Context)
	}
	same := print(func(*Body) {})
	for name, change := range map[string]func(b *Body){
		"another task":    func(b *Body) { b.Context.TaskID = "task_3" },
		"roles and grant": func(b *Body) { b.Actor.Roles, b.Actor.Grant = []string{"x"}, "" },
		"issued later":    func(b *Body) { b.Constraints.IssuedAt = "2026-11-20T10:01:00.000Z" },
		"another spelling": func(b *Body) {
			b.Intent.Args = json.RawMessage(`{ "input":{"n":1,"q":"\u003ca> & ä"},"skill":"feed"}`)
		},
		"labels and causes": func(b *Body) { b.Context.Labels, b.Context.Cause = nil, Digest(nil) },
		"call":              func(b *Body) { b.Context.Call = "2.0" },
		"trace":             func(b *Body) { b.TraceID = "" },
	} {
		if print(change) != same {
			t.Errorf("%s: another intent", name)
		}
	}
	seen := map[string]string{same: "the intent"}
	for name, change := range map[string]func(b *Body){
		"type":       func(b *Body) { b.Intent.Type = "skill.find" },
		"args":       func(b *Body) { b.Intent.Args = json.RawMessage(`{}`) },
		"user":       func(b *Body) { b.Actor.UserID = "eve" },
		"session":    func(b *Body) { b.Context.SessionID = "s2" },
		"turn":       func(b *Body) { b.Context.TurnID = "t2" },
		"plan":       func(b *Body) { b.Context.PlanID = "plan_2" },
		"revision":   func(b *Body) { b.Context.Revision = 2 },
		"step":       func(b *Body) { b.Context.Step = 3 },
		"run":        func(b *Body) { b.Context.RunID = "r" },
		"node":       func(b *Body) { b.Context.NodeID = "n" },
		"occurrence": func(b *Body) { b.Context.Occurrence = 1 },
		"ask":        func(b *Body) { b.Context.Ask = "2.0" },
	} {
		fp := print(change)
		if other, dup := seen[fp]; dup {
			t.Errorf("%s is %s", name, other)
		}
		seen[fp] = name
	}
	raw, _, err := Sign(vTask, base)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := Parse(raw)
	e, err := u.Verify(testVerifier())
	if err != nil || e.Fingerprint() != same {
		t.Errorf("the signed intent's fingerprint is another: %v", err)
	}
}

func TestPoP(t *testing.T) {
	args := map[string]any{"plan_id": "plan_1", "step": 1, "jwk": vTask.VerificationKey().ToJWK()}
	pop, err := SignPoP(vTask, args)
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyPoP(pop, vTask.VerificationKey(), args); err != nil {
		t.Error(err)
	}
	args["step"] = 2
	if err := VerifyPoP(pop, vTask.VerificationKey(), args); CodeOf(err) != SignatureInvalid {
		t.Errorf("other arguments: %v", err)
	}
	args["step"] = 1
	if err := VerifyPoP(pop, vManager.VerificationKey(), args); CodeOf(err) != SignatureInvalid {
		t.Errorf("another key: %v", err)
	}
	if err := VerifyPoP(strings.Replace(pop, "..", ".", 1), vTask.VerificationKey(), args); CodeOf(err) != SignatureInvalid {
		t.Errorf("not detached: %v", err)
	}
}

// TestBytes: an envelope has its members and sig, sorted.
func TestBytes(t *testing.T) {
	for _, body := range []string{
		`{"actor":{"tenant":"t","user_id":"u"},"constraints":{"audience":"x","idempotency_key":"k","issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":1},"intent":{"args":{"trace_id":"x","version":"1.0"},"type":"a"},"version":"1.0"}`,
		`{"actor":{"tenant":"t","user_id":"u"},"constraints":{"audience":"x","idempotency_key":"k","issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":1},"context":{},"intent":{"args":{},"type":"a"},"trace_id":"0af7651916cd43dd8448eb211c80319c","version":"1.0"}`,
	} {
		u, err := newUnverified([]byte(body), b64.EncodeToString([]byte(protectedHeader(TypIntent, strings.Repeat("A", 43)))), strings.Repeat("A", 86))
		if err != nil {
			t.Fatal(err)
		}
		got := u.Bytes()
		want, err := Canonical([]byte(`{"sig":"` + u.header + ".." + u.sig + `",` + body[1:]))
		if err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s, want %s, %v", got, want, err)
		}
	}
}
