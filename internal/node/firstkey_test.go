package node

import (
	"errors"
	"testing"

	"aob.dev/writ/internal/keydir"
)

// TestWeakFirstKey: a first key that can be guessed is taken where only this machine reaches writ,
// and that is said; it opens nothing elsewhere, nor at a later start.
func TestWeakFirstKey(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.FirstKey = "dev-key"
	t.Run("near", func(t *testing.T) {
		n := open(t, cfg)
		run(t, n)
		if !n.KeyInUse || !n.KeyWeak {
			t.Errorf("taken %v, weak %v", n.KeyInUse, n.KeyWeak)
		}
	})
	for name, change := range map[string]func(*Config){
		"elsewhere":          func(c *Config) { c.Listen = "0.0.0.0:0" },
		"under a public URL": func(c *Config) { c.PublicURL = "https://writ.example" },
	} {
		other := config(t.TempDir())
		other.FirstKey = cfg.FirstKey
		change(&other)
		if _, err := Open(t.Context(), other); !errors.Is(err, keydir.ErrWeakKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	later := cfg
	later.Listen = "0.0.0.0:0"
	n := open(t, later)
	if err := n.Run(t.Context(), make(chan struct{})); !errors.Is(err, keydir.ErrWeakKey) {
		t.Errorf("at a later start elsewhere: %v", err)
	}
}
