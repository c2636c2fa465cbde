package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/upkeep"
	"aob.dev/writ/storage"
)

// Whoever overwrites a key of the key log does not make an order run again: fsck
// names it, a start believes the record and says so.
func TestOverwrittenKeyIsNotFree(t *testing.T) {
	cfg := config(t.TempDir())
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	args, err := json.Marshal(catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	sealed, _, err := intents.Seal(n.keys.now(intents.RoleOperator), intents.Body{
		Version: intents.Version, Intent: intents.Intent{Type: "admin.put", Args: args}, Actor: intents.Actor{UserID: "local", Tenant: "system"},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(cfg.Now()), TTLSec: 300, Audience: n.Origin(), IdempotencyKey: "rnd_0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := n.router.Submit(t.Context(), sealed)
	if err != nil || first.Code != intents.OK {
		t.Fatalf("%+v %v", first, err)
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Fatal(err)
	}
	key := storage.OrderKey("system", "local", "admin.put", "rnd_0123456789abcdef")
	path := filepath.Join(cfg.Dir, "journal", "journal.db")
	raw, err := os.ReadFile(path)
	if err != nil || bytes.Count(raw, key[:]) != 1 {
		t.Fatalf("the key is there %d times, %v", bytes.Count(raw, key[:]), err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, key[:], bytes.Repeat([]byte{7}, len(key)), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := upkeep.Fsck(t.Context(), cfg.Dir, nil); err != nil || h.OK || h.FirstBad.Position != *first.Position || !strings.Contains(h.FirstBad.Reason, "key log") {
		t.Errorf("fsck: %+v %v", h.FirstBad, err)
	}
	n = open(t, cfg)
	run(t, n)
	again, err := n.router.Submit(t.Context(), sealed)
	if err != nil || !again.Replayed || *again.Position != *first.Position {
		t.Errorf("it runs again: %+v %v", again, err)
	}
	if _, status, up := readyz(t, n); status != "degraded" || len(up) != 1 || up[0].Name != conditionKeyLog {
		t.Errorf("%s %+v", status, up)
	}
}
