package intents

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/edwards25519"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// weakKeys are the eight points of small order, and encodings that are not canonical
// (RFC 8032 §5.1.3): all of them allow forged signatures.
var weakKeys = map[string]string{
	"order 1":                   "0100000000000000000000000000000000000000000000000000000000000000",
	"order 2":                   "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"order 4":                   "0000000000000000000000000000000000000000000000000000000000000000",
	"order 4, negative":         "0000000000000000000000000000000000000000000000000000000000000080",
	"order 8, a":                "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"order 8, a negative":       "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"order 8, b":                "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"order 8, b negative":       "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"identity as p+1":           "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"zero as p":                 "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"identity with a sign":      "0100000000000000000000000000000000000000000000000000000000000080",
	"order 2 with a sign":       "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"not a point":               "0200000000000000000000000000000000000000000000000000000000000000",
	"y above p, high order (3)": "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

func TestAdmitKeyRefusesWeakKeys(t *testing.T) {
	for name, key := range weakKeys {
		if err := AdmitKey(unhex(t, key)); err == nil {
			t.Errorf("%s: admitted", name)
		}
	}
	for _, n := range []int{0, 31, 33, 64} {
		if err := AdmitKey(make([]byte, n)); err == nil {
			t.Errorf("%d bytes: admitted", n)
		}
	}
}

// TestAdmitKeyRefusesMixedOrder adds each point of small order to good keys.
func TestAdmitKeyRefusesMixedOrder(t *testing.T) {
	good := vManager.Public()
	if err := AdmitKey(good); err != nil {
		t.Fatal(err)
	}
	p, err := new(edwards25519.Point).SetBytes(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range weakKeys {
		if name == "order 1" || !strings.HasPrefix(name, "order") || strings.Contains(name, "sign") {
			continue
		}
		torsion, err := new(edwards25519.Point).SetBytes(unhex(t, key))
		if err != nil {
			t.Fatal(err)
		}
		mixed := new(edwards25519.Point).Add(p, torsion).Bytes()
		if err := AdmitKey(mixed); err == nil {
			t.Errorf("%s: admitted", name)
		}
	}
}

// TestThumbprint is RFC 8037 appendix A.3.
func TestThumbprint(t *testing.T) {
	pub, err := b64.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Thumbprint(pub), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"; got != want {
		t.Errorf("thumbprint %s, want %s", got, want)
	}
}

func TestNewSignerTakesEd25519Only(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSigner(RoleManager, other); err == nil {
		t.Error("an ECDSA key signs")
	}
}

func TestKeyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.pem")
	if err := WriteKey(path, vManager); err != nil {
		t.Fatal(err)
	}
	if err := WriteKey(path, vTask); err == nil {
		t.Error("a key file was overwritten")
	}
	read, err := ReadKey(path, RoleManager)
	if err != nil {
		t.Fatal(err)
	}
	if read.KID != vManager.KID || read.Role != RoleManager || !bytes.Equal(read.Key.(ed25519.PrivateKey), vManager.Key.(ed25519.PrivateKey)) {
		t.Errorf("read %s %s", read.Role, read.KID)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadKey(path, RoleManager); err == nil || !strings.Contains(err.Error(), "readable by others") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(junk, RoleManager); err == nil {
		t.Error("junk is a key")
	}
}
