package cell

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
)

// TestPublished: the public keys of a directory are read again when they change; a file that is
// older, of another log or unreadable changes nothing. The private key follows.
func TestPublished(t *testing.T) {
	engine, err := policies.Feed{}.Engine()
	must(t, err)
	root := filepath.Join(t.TempDir(), "cell")
	_, err = Create(root, engine, catalog.Builtin())
	must(t, err)
	if _, err := Create(root, engine, catalog.Builtin()); err == nil {
		t.Error("the keys of a cell are made twice")
	}
	dir := Keys(root, "manager")
	p, err := OpenPublished([]string{dir})
	must(t, err)
	ring, err := keydir.OpenRing(func() (keydir.Signers, error) { return ReadSigners([]string{dir}) }, p, slog.New(slog.DiscardHandler), intents.RoleManager)
	must(t, err)
	first := ring.Now(intents.RoleManager)
	if first.KID == "" || ring.Now(intents.RoleRouter).KID != "" {
		t.Fatalf("a manager signs with %+v", first)
	}

	second, err := intents.GenerateSigner(intents.RoleManager)
	must(t, err)
	_, err = keydir.Add(dir, second)
	must(t, err)
	set := p.JWKS()
	at := time.Now()
	write := func(s intents.JWKS) error {
		raw, err := json.Marshal(s)
		must(t, err)
		file := filepath.Join(dir, jwksName)
		must(t, os.WriteFile(file, raw, 0o600))
		at = at.Add(time.Second) // however coarse the clock of the file system is
		return os.Chtimes(file, at, at)
	}
	put := func(s intents.JWKS) error {
		must(t, write(s))
		_, err := p.read()
		return err
	}
	next := set
	next.Version++
	next.Keys = append(next.Keys[:len(next.Keys):len(next.Keys)], second.VerificationKey().ToJWK())
	must(t, write(next))
	if _, err := p.Key(second.KID); err != nil {
		t.Errorf("a key that has just come: %v", err)
	}
	if got := ring.Now(intents.RoleManager); got.KID != second.KID {
		t.Errorf("%s signs after the rotation to %s", got.KID, second.KID)
	}
	other := next
	other.Origin, other.Version = "writ/another", 9
	for what, s := range map[string]intents.JWKS{"older": set, "another": other, "none": {}} {
		if err := put(s); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := p.Key(second.KID); err != nil || p.KeySetVersion() != next.Version {
		t.Errorf("version %d, %v", p.KeySetVersion(), err)
	}
	next.Version++
	next.Keys[len(next.Keys)-1].Revoked = true
	must(t, put(next))
	if _, err := p.Key(second.KID); err == nil || !strings.Contains(err.Error(), string(intents.KeyRevoked)) {
		t.Errorf("a revoked key: %v", err)
	}
	if got := ring.Now(intents.RoleManager); got.KID != first.KID {
		t.Errorf("%s signs after the other was revoked", got.KID)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
