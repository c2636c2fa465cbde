package keydir

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestCheckAPIKey: our own keys are good ones; what can be guessed, and what no header
// may have, is refused without being repeated.
func TestCheckAPIKey(t *testing.T) {
	for _, key := range []string{NewAPIKey(), "0f4c2b7a91d38e65" + "c0ffee00d15ea5e5", "550e8400-e29b-41d4-a716-446655440000", "q3Vn+0xKc9TtYb1zR7mLwA=="} {
		if err := CheckAPIKey(key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{
		"dev-key", "", strings.Repeat("a", 64), strings.Repeat("secret", 8), "0123456789abcdef0123456789abcde", strings.Repeat("abcdefghijkl", 40),
		"abcdefghijklmnopqrstuvwxyz0123456789", "passwordPasswordpassword12345678", "changeme-changeme-changeme-changeme", "aaaaaaaaaaaabbbbbbbbbbbbcccccccccccc1234567890", strings.Repeat("0f4c2b7a", 8),
		"correct-horse", "correct-horse-battery-staple", "CorrectHorseBatteryStaple2026!", "c0rr3ct.h0rs3.b4tt3ry.st4pl3", "password-password-password", "passwordpasswordpassword", "P@ssw0rdP@ssw0rd1234567890",
		"my-secret-api-key-for-production", "0123456789abcdef-the-key-of-a-secret-manager", "qwertyuiopasdfghjklzxcvbnm1234567890", "letmein_letmein_letmein_please",
		"geheimesschluesselwort-fuer-die-abteilung", "mein-schatz-ist-heute-nicht-hier-geheim", "motdepassesupersecretdelaboite", "contrasenaparalosclientes",
	} {
		if err := CheckAPIKey(key); !errors.Is(err, ErrWeakKey) {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"0123456789abcdef 0123456789abcdef", "0123456789abcdef\x000123456789abcdef", "0123456789abcdefä0123456789abcdef", strings.Repeat("abcdefghijkl", 43)} {
		if err := CheckAPIKey(key); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// TestRandomAPIKeys: no random key of 24 characters or more is taken for one that can be guessed,
// whatever it is made of.
func TestRandomAPIKeys(t *testing.T) {
	r := rand.NewChaCha8([32]byte{1})
	for name, of := range map[string]string{
		"hexadecimal": "0123456789abcdef", "lower case": "abcdefghijklmnopqrstuvwxyz", "base32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
		"base62": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "base64url": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
		"all": "!#$%&()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_abcdefghijklmnopqrstuvwxyz{|}~",
	} {
		least := math.Inf(1)
		for range 1000 {
			key := make([]byte, 24)
			for i := range key {
				key[i] = of[r.Uint64()%uint64(len(of))]
			}
			if err := CheckAPIKey(string(key)); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
			}
			least = min(least, bits(string(key)))
		}
		t.Logf("%s: at least %.0f bits", name, least)
	}
}
