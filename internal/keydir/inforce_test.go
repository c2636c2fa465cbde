package keydir

import (
	"os"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestInForce: of a role's keys the last one in the set signs that is held and
// not revoked; which files there are decides nothing.
func TestInForce(t *testing.T) {
	dir, keys := create(t)
	set := keys.KeySet().Keys
	next, err := intents.GenerateSigner(intents.RolePlanner)
	if err != nil {
		t.Fatal(err)
	}
	path, err := Add(dir, next)
	if err != nil {
		t.Fatal(err)
	}
	if got := mode(t, path); got != 0o600 {
		t.Errorf("mode %04o", got)
	}
	planner := func(set []intents.JWK) string {
		t.Helper()
		held, err := LoadAll(dir)
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := held.InForce(set)
		if err != nil {
			t.Fatal(err)
		}
		if chosen[intents.RoleManager].KID != keys[intents.RoleManager].KID {
			t.Error("the manager's key is another one")
		}
		return chosen[intents.RolePlanner].KID
	}
	first := keys[intents.RolePlanner].KID
	if planner(set) != first {
		t.Error("a key that is in no key set signs")
	}
	both := append(set[:len(set):len(set)], next.VerificationKey().ToJWK())
	if planner(both) != next.KID {
		t.Error("the key that follows does not sign")
	}
	raw := keys[intents.RoleOperator].VerificationKey().ToJWK()
	raw.Subject, raw.Tenant, raw.Raw = LocalSubject, LocalTenant, true
	if held, err := LoadAll(dir); err != nil {
		t.Fatal(err)
	} else if _, err := held.InForce(append(slices.DeleteFunc(slices.Clone(set), func(j intents.JWK) bool { return j.Role == intents.RoleOperator }), raw)); err == nil {
		t.Error("a key for raw signatures signs what needs a JWS")
	}
	both[len(both)-1].Revoked = true
	if planner(both) != first {
		t.Error("a revoked key signs")
	}
	both[len(both)-1].Revoked = false
	if err := os.Remove(file(dir, intents.RolePlanner)); err != nil {
		t.Fatal(err)
	}
	if planner(both) != next.KID {
		t.Error("without the first file the second is not found")
	}
	held, err := LoadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.InForce(set); err == nil || !strings.Contains(err.Error(), "writ admin keys rotate planner") {
		t.Errorf("no planner key is here: %v", err)
	}
}

// TestInForceOperators: keys of other operators are not the data directory's own.
func TestInForceOperators(t *testing.T) {
	dir, keys := create(t)
	other, err := intents.GenerateSigner(intents.RoleOperator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Add(dir, other); err != nil {
		t.Fatal(err)
	}
	j := other.VerificationKey().ToJWK()
	j.Subject, j.Tenant = "ana", "acme"
	held, err := LoadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := held.InForce(append(keys.KeySet().Keys, j))
	if err != nil || chosen[intents.RoleOperator].KID != keys[intents.RoleOperator].KID {
		t.Errorf("operator %s, %v", chosen[intents.RoleOperator].KID, err)
	}
}
