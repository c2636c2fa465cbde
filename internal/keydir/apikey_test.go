package keydir

import (
	"strings"
	"testing"
)

// TestCheckAPIKey: our own keys are good ones; what can be guessed, and what no header
// may have, is refused without being repeated.
func TestCheckAPIKey(t *testing.T) {
	for _, key := range []string{NewAPIKey(), "0f4c2b7a91d38e65" + "c0ffee00d15ea5e5", strings.Repeat("abcdefghijkl", 40)} {
		if err := CheckAPIKey(key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"dev-key", strings.Repeat("a", 64), strings.Repeat("secret", 8), "0123456789abcdef0123456789abcde", "0123456789abcdef 0123456789abcdef", "0123456789abcdef\x000123456789abcdef", "0123456789abcdefä0123456789abcdef", strings.Repeat("abcdefghijkl", 43)} {
		if err := CheckAPIKey(key); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
