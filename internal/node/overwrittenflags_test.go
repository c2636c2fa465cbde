package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/upkeep"
)

// setFlags overwrites the flags of a record (the second byte of its body). 0: it takes no key.
const setFlags = "UPDATE records SET body = CAST(substr(body, 1, 1) || x'0%d' || substr(body, 3) AS BLOB) WHERE position = %d"

// TestOverwrittenFlagsFreeNoKey: whoever overwrites what is kept beside the parts of an intent,
// so that it would take no key, does not make it run again: fsck names it, a start believes
// the parts and says so.
func TestOverwrittenFlagsFreeNoKey(t *testing.T) {
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
	signed, _, err := intents.Sign(n.keys.Now(intents.RoleOperator), intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: "admin.put", Args: args}, Actor: intents.Actor{UserID: "local", Tenant: "system"},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(cfg.Now()), TTLSec: 300, Audience: n.Origin(), IdempotencyKey: "rnd_0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := n.router.Submit(t.Context(), signed)
	if err != nil || first.Code != intents.OK {
		t.Fatalf("%+v %v", first, err)
	}
	if err := errors.Join(stop(), n.Close()); err != nil {
		t.Fatal(err)
	}
	execute(t, datadir.JournalFile(cfg.Dir), fmt.Sprintf(setFlags, 0, *first.Position))
	if h, err := upkeep.Fsck(t.Context(), cfg.Dir, nil); err != nil || h.OK || h.FirstBad.Position != *first.Position || !strings.Contains(h.FirstBad.Reason, "takes a key") {
		t.Errorf("fsck: %+v %v", h.FirstBad, err)
	}
	n = open(t, cfg)
	run(t, n)
	again, err := n.router.Submit(t.Context(), signed)
	if err != nil || !again.Replayed || *again.Position != *first.Position {
		t.Errorf("it runs again: %+v %v", again, err)
	}
	if _, status, up := readyz(t, n); status != "degraded" || len(up) != 1 || up[0].Name != conditionBeside {
		t.Errorf("%s %+v", status, up)
	}
}
