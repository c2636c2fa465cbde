package cell

import (
	"os"
	"path/filepath"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
)

// TestCopyKeys: a copy has the keys of the roles, including those made since, and not the root key,
// which is offline.
func TestCopyKeys(t *testing.T) {
	engine, err := policies.Feed{}.Engine()
	must(t, err)
	cell, to := filepath.Join(t.TempDir(), "cell"), t.TempDir()
	_, err = Create(cell, engine, catalog.Builtin())
	must(t, err)
	must(t, copyKeys(cell, to))
	must(t, os.Rename(filepath.Join(cell, "root"), filepath.Join(t.TempDir(), "offline")))
	later, err := intents.GenerateSigner(intents.RoleRouter)
	must(t, err)
	_, err = keydir.Add(Keys(cell, "router"), later)
	must(t, err)
	must(t, os.Remove(filepath.Join(Keys(cell, "router"), "router.pem")))
	for range 2 {
		must(t, copyKeys(cell, to))
	}
	held, err := keydir.LoadAll(datadir.Keys(to))
	must(t, err)
	if _, there := held[later.KID]; !there || len(held.ByRole(intents.RoleRouter)) != 2 || len(held.ByRole(intents.RoleRoot)) != 0 {
		t.Errorf("%d keys of routers, %d of root, the new one: %v", len(held.ByRole(intents.RoleRouter)), len(held.ByRole(intents.RoleRoot)), there)
	}
	must(t, os.RemoveAll(Keys(cell, "planner")))
	if copyKeys(cell, to) == nil {
		t.Error("a role without any key")
	}
}
