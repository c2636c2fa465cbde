package node

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
)

// Below the floor an intent is told why it is not taken, readiness says so too, and
// both are over when there is room.
func TestDiskFloor(t *testing.T) {
	dir := t.TempDir()
	begun(t, config(dir))
	cfg := config(dir)
	cfg.Limits.FreeFloor = math.MaxInt64
	n := open(t, cfg)
	log := newMessages()
	n.cfg.Log = log.logger()
	run(t, n)
	err := tenantPut(t.Context(), n, "acme")
	if err == nil || !strings.Contains(err.Error(), "OVERLOADED: too little disk is free") {
		t.Errorf("an intent: %v", err)
	}
	log.wait(t, fmt.Sprintf("less than %d MiB of disk are free: no new intent is accepted", math.MaxInt64>>20), 1)
	if code, status, up := readyz(t, n); code != http.StatusOK || status != "degraded" || len(up) != 1 || up[0].Name != conditionDisk {
		t.Errorf("%d %s %+v", code, status, up)
	}
}
