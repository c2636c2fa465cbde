package intents

import (
	"reflect"
	"testing"
)

// TestExactNames: a claim has one name, however deep it stands.
func TestExactNames(t *testing.T) {
	type inner struct {
		Count int `json:"count"`
	}
	type claims struct {
		inner
		Scope  *TaskScopeClaim `json:"scope"`
		Pins   []Pin           `json:"pins"`
		Value  any             `json:"value"`
		Ticket Ticket          `json:"ticket"`
	}
	for text, want := range map[string]bool{
		`{"count":1,"scope":null,"pins":null}`: true,
		`{"Count":1}`:                          false,
		`{"scope":{"task_id":"t","return_spec":{"Shape":"any"}}}`:      true,
		`{"scope":{"Task_id":"t"}}`:                                    false,
		`{"pins":[{"skill":"a"},{"digest":"b"}]}`:                      true,
		`{"pins":[{"skill":"a"},{"Digest":"b"}]}`:                      false,
		`{"value":{"Anything":1}}`:                                     true,
		`{"ticket":{"deadline":"2026-11-20T10:00:00Z"}}`:               true,
		`{"ticket":{"inputs":[{"value":"AA==","SHA256":"x"}]}}`:        false,
		`{"ticket":{"obligations":[{"name":"mask","value":{"A":1}}]}}`: true,
	} {
		if got := exactNames([]byte(text), reflect.TypeFor[*claims]()); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestTicketNamesAreExact: nor does a signature make another name of a claim.
func TestTicketNamesAreExact(t *testing.T) {
	token, err := SignCompact(vRouter, TypTicket, object{"iss": vectorOrigin, "Intent_id": Digest(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTicket(token, ring(vectorKeys()...)); CodeOf(err) != SignatureInvalid {
		t.Errorf("opened: %v", err)
	}
}

// TestVerifyPoPSpelling: a proof has one spelling.
func TestVerifyPoPSpelling(t *testing.T) {
	args := object{"task_id": "t"}
	pop, err := SignPoP(vTask, args)
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyPoP(pop, vTask.VerificationKey(), args); err != nil {
		t.Error(err)
	}
	last := len(pop) - 1
	for _, bad := range []string{pop + "\n", pop[:last] + nextDigit(pop[last]), pop + "="} {
		if err := VerifyPoP(bad, vTask.VerificationKey(), args); CodeOf(err) != SignatureInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestJWKSAdmitsTaskKeys: a verifier may be given what no key set may hold.
func TestJWKSAdmitsTaskKeys(t *testing.T) {
	task := []JWK{vTask.VerificationKey().ToJWK()}
	if keys, err := (JWKS{Keys: task}).Admit(); err != nil || keys[vTask.KID].Role != RoleTask {
		t.Errorf("%v %v", keys, err)
	}
	if _, err := (KeySet{Keys: task}).Admit(); err == nil {
		t.Error("a key set holds a task's key")
	}
	if _, err := (JWKS{Keys: []JWK{vRoot.VerificationKey().ToJWK()}}).Admit(); err == nil {
		t.Error("a root signs orders")
	}
}
