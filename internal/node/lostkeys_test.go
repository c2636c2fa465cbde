package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage/sqlite"
)

// TestLostKeys: keys that are zeros without an erasure stop a node from accepting intents, and a
// file that is missing is a condition of one that does.
func TestLostKeys(t *testing.T) {
	for name, harm := range map[string]func(file string) error{
		conditionErasures: func(file string) error { return os.WriteFile(file, make([]byte, 4096*32), 0o600) },
		conditionKeys:     os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			n, err := Open(t.Context(), cfg)
			must(t, err)
			stop := run(t, n)
			must(t, n.operator(t.Context(), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.k", Value: json.RawMessage(`1`)}}))
			must(t, errors.Join(stop(), n.Close()))
			n, err = Open(t.Context(), cfg)
			must(t, err)
			if n.health.Up(name) {
				t.Errorf("%+v", n.health.List())
			}
			must(t, n.Close())
			must(t, harm(filepath.Join(cfg.Dir, sqlite.KeysName, "0000000001")))
			if n = open(t, cfg); !n.health.Up(name) || len(n.health.List()) != 1 {
				t.Errorf("%+v", n.health.List())
			}
		})
	}
}
