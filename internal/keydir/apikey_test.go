package keydir

import (
	"errors"
	"strings"
	"testing"
)

// TestCheckAPIKey: our own keys are good ones; what can be guessed, and what no header
// may have, is refused without being repeated.
func TestCheckAPIKey(t *testing.T) {
	for _, key := range []string{NewAPIKey(), "0f4c2b7a91d38e65" + "c0ffee00d15ea5e5", "550e8400-e29b-41d4-a716-446655440000", "q3Vn+0xKc9TtYb1zR7mLwA==", "0123456789abcdef-the-key-of-a-secret-manager"} {
		if err := CheckAPIKey(key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{
		"dev-key", "", strings.Repeat("a", 64), strings.Repeat("secret", 8), "0123456789abcdef0123456789abcde", strings.Repeat("abcdefghijkl", 40),
		"abcdefghijklmnopqrstuvwxyz0123456789", "passwordPasswordpassword12345678", "changeme-changeme-changeme-changeme", "aaaaaaaaaaaabbbbbbbbbbbbcccccccccccc1234567890", strings.Repeat("0f4c2b7a", 8),
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
