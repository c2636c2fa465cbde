package intents

import (
	"bytes"
	"crypto"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testTicket() Ticket {
	return Ticket{
		Issuer: vectorOrigin, IntentID: Digest(nil), Type: "skill.call", Executor: "skills",
		Actor: Principal{UserID: "ana", Tenant: "default", Roles: []string{"user"}, Session: "s"}, Position: 23, Attempt: 1,
		Deadline: vectorNow.Add(time.Minute), Obligations: []Obligation{{Name: "max_bytes", Value: 1000.0}}, PolicyDigest: Digest(nil),
		Scope:  &TaskScopeClaim{Task: "task_1", Plan: "plan_1", Revision: 1, Step: 1, Skills: []string{"feed"}, ReturnSpec: json.RawMessage(`{"reason":"r","shape":"any"}`), Deadline: vectorNow.Add(time.Hour)},
		Pins:   []Pin{{Skill: "feed", Digest: Digest(nil), Effect: "pure"}},
		Inputs: []Input{{Pointer: "/input", Value: json.RawMessage(`[1]`), SHA256: Digest([]byte("[1]"))}},
	}
}

// TestTokensAreWrittenInOrder: what encoding/json writes of a token is canonical,
// so that opening one need not compare every name.
func TestTokensAreWrittenInOrder(t *testing.T) {
	grant := Grant{
		Issuer: "i", Audience: "a", Subject: "s", Tenant: "t", Roles: []string{"user"}, Act: Act{Client: "api", AMR: []string{"key"}},
		Session: "s", Turn: "t", IssuedAt: 1, Expires: 2, ID: "g", For: "plan:p",
	}
	receipt := Receipt{Code: OK, IntentID: "i", Issuer: "i", OutcomeDigest: "o", PolicyDigest: "p", Position: 1, RecordDigest: "r", WithinSec: 1}
	body := fullBody()
	body.Intent.Args = json.RawMessage(`{"input":{"a":"<&>\n","b":1},"skill":"a"}`)
	for _, token := range []any{grant, testTicket(), receipt, body} {
		plain, err := MarshalPlain(token)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := scan(plain, false); !ok {
			t.Errorf("not canonical: %s", plain)
		}
	}
}

func TestTicket(t *testing.T) {
	keys := ring(vectorKeys()...)
	token, err := IssueTicket(vRouter, testTicket())
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenTicket(token, keys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testTicket(), got); diff != "" {
		t.Errorf("ticket changed (-sent +read):\n%s", diff)
	}
	for _, by := range []Signer{vGateway, vManager, vTask, vOperator} {
		token, err := IssueTicket(by, testTicket())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTicket(token, keys); CodeOf(err) != KeyRole {
			t.Errorf("ticket by %s: %v", by.Role, err)
		}
	}
}

func TestReceipt(t *testing.T) {
	keys := ring(vectorKeys()...)
	want := Receipt{Issuer: vectorOrigin, IntentID: Digest(nil), Position: 7, Code: OK, PolicyDigest: Digest(nil), RecordDigest: Digest(nil), OutcomeDigest: Digest(nil), WithinSec: PromiseSeconds}
	token, err := IssueReceipt(vRouter, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenReceipt(token, keys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("receipt changed (-sent +read):\n%s", diff)
	}
	again, err := IssueReceipt(vRouter, want)
	if err != nil || again != token {
		t.Errorf("a receipt is a pure function of its records: %v", err)
	}
	byGateway, err := IssueReceipt(vGateway, want)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReceipt(byGateway, keys); CodeOf(err) != KeyRole {
		t.Errorf("receipt by the gateway: %v", err)
	}
}

// TestTokensAreNotEachOther: a signature over one token never passes as another.
func TestTokensAreNotEachOther(t *testing.T) {
	keys := ring(vectorKeys()...)
	tokens := map[string]any{TypGrant: &Grant{}, TypTicket: &Ticket{}, TypReceipt: &Receipt{}, TypKeySet: &KeySet{}, TypIntent: &Body{Intent: Spec{Args: []byte("{}")}}, TypPoP: &map[string]any{}}
	for signed, whole := range tokens {
		token, err := SignCompact(vRouter, signed, whole)
		if err != nil {
			t.Fatal(err)
		}
		for opened, claims := range tokens {
			if _, err := OpenCompact(token, opened, keys, claims); (err == nil) != (signed == opened) {
				t.Errorf("%s opened as %s: %v", signed, opened, err)
			}
		}
	}
}

func TestOpenCompactRefuses(t *testing.T) {
	keys := ring(vectorKeys()...)
	token, err := SignCompact(vRouter, TypReceipt, Receipt{Position: 1})
	if err != nil {
		t.Fatal(err)
	}
	header, rest, _ := strings.Cut(token, ".")
	payload, sig, _ := strings.Cut(rest, ".")
	unknown, err := SignCompact(vRouter, TypReceipt, map[string]any{"position": 1, "admin": true})
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"nothing":         "",
		"two parts":       header + "." + payload,
		"four parts":      token + ".AA",
		"detached":        header + ".." + sig,
		"payload changed": header + "." + b64.EncodeToString([]byte(`{"position":2}`)) + "." + sig,
		"padded":          token + "==",
		"S + L":           header + "." + payload + "." + addL(sig),
		"unknown member":  unknown,
		"huge":            token + strings.Repeat("A", maxToken),
	} {
		if _, err := OpenCompact(bad, TypReceipt, keys, &Receipt{}); CodeOf(err) != SignatureInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGrantTimes(t *testing.T) {
	keys := ring(vectorKeys()...)
	token := vectorGrant(unchanged)
	issued, expires := vectorNow.Add(-60*time.Second), vectorNow.Add(600*time.Second)
	for _, tt := range []struct {
		name string
		now  time.Time
		ok   bool
	}{
		{"not asked", time.Time{}, true},
		{"at issue", issued, true},
		{"clock 5 s behind", issued.Add(-Leeway), true},
		{"clock 6 s behind", issued.Add(-Leeway - time.Second), false},
		{"at expiry", expires, true},
		{"5 s after", expires.Add(Leeway), true},
		{"6 s after", expires.Add(Leeway + time.Second), false},
	} {
		g, err := OpenGrant(token, vectorOrigin, keys, tt.now)
		if (err == nil) != tt.ok || err != nil && CodeOf(err) != GrantInvalid {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err == nil && g.Subject != "ana" {
			t.Errorf("%s: %+v", tt.name, g)
		}
	}
}

// FuzzTicket: no text is a ticket but one that a router has signed, and of that
// only canonical claims with exact names, so that everybody reads the same.
func FuzzTicket(f *testing.F) {
	keys := ring(vectorKeys()...)
	token, err := IssueTicket(vRouter, testTicket())
	if err != nil {
		f.Fatal(err)
	}
	_, rest, _ := strings.Cut(token, ".")
	encoded, _, _ := strings.Cut(rest, ".")
	f.Add(token, mustDecode(encoded))
	f.Add(token+"=", []byte(`{}`))
	f.Add(plainIntent(), []byte(`{"iss":"a","Iss":"b"}`))
	f.Add("..", []byte(`{"deadline":"2026-11-20T10:00:00Z","position":1e3}`))
	f.Fuzz(func(t *testing.T, text string, claims []byte) {
		if got, err := OpenTicket(text, keys); err == nil {
			if again, err := IssueTicket(vRouter, got); err != nil || again != text {
				t.Errorf("%q is a second spelling of %q (%v)", text, again, err)
			}
		}
		header := b64.EncodeToString([]byte(protectedHeader(TypTicket, vRouter.KID)))
		sig, err := vRouter.Key.Sign(nil, signingInput(header, claims), crypto.Hash(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTicket(header+"."+b64.EncodeToString(claims)+"."+b64.EncodeToString(sig), keys); err != nil {
			return
		}
		if canonical, err := Canonical(claims); err != nil || !bytes.Equal(canonical, claims) {
			t.Errorf("claims %q", claims)
		}
	})
}
