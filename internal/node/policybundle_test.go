package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
)

// TestPolicyBundle: a signed bundle is in force from the start, with its
// revision recorded; an older one does not start, a newer one replaces it while
// running, a stranger's never does. Its decisions are logged.
func TestPolicyBundle(t *testing.T) {
	key, err := intents.GenerateSigner(intents.RoleOperator)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := intents.GenerateSigner(intents.RoleOperator)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p.tar.gz")
	ship := func(revision int64, remark string, by intents.Signer) {
		t.Helper()
		s := policies.Embedded()
		s["remark.rego"] = []byte("package remark\n\n# " + remark + "\n")
		raw, err := policies.BuildBundle(policies.Tree{Source: s, Revision: revision}, &by)
		if err != nil {
			t.Fatal(err)
		}
		part := path + ".part"
		if err := errors.Join(os.WriteFile(part, raw, 0o600), os.Rename(part, path)); err != nil {
			t.Fatal(err)
		}
	}
	ship(5, "five", key)
	cfg, log := config(t.TempDir()), newMessages()
	cfg.Policy, cfg.Log = policies.Place{At: path, Key: key.Public()}, log.logger()
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	if n.policy.Engine().Revision() != 5 {
		t.Errorf("revision %d in force", n.policy.Engine().Revision())
	}
	ship(9, "stranger", stranger)
	log.wait(t, saysNotLoaded, 1)
	ship(4, "four", key)
	log.wait(t, saysNotLoaded, 2)
	if n.policy.Engine().Revision() != 5 || !n.router.Ready() || n.policy.Refusals() != 2 {
		t.Errorf("revision %d in force, %d refused", n.policy.Engine().Revision(), n.policy.Refusals())
	}
	next := n.Records().Next()
	ship(7, "seven", key)
	log.wait(t, saysInForce, 1)
	if c := controlOf(t, recorded(t, n, next)); c.Revision != 7 || c.Policy != n.policy.Engine().Digest() {
		t.Errorf("recorded %+v", c)
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Fatal(err)
	}

	ship(6, "six", key)
	again, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Run(t.Context(), nil), again.Close()); !errors.Is(err, policies.ErrOlder) {
		t.Errorf("an older bundle: %v", err)
	}
}
