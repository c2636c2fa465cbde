package upkeep

import (
	"testing"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
)

// For a directory that no process uses, the doctor reports what its documents lack, and no other
// condition of the ended process.
func TestDoctorOfSetAside(t *testing.T) {
	dir := t.TempDir()
	aside := health.Condition{Name: datadir.ConditionAside, Reason: "2 records", Do: "writ audit fsck --data DIR"}
	if err := datadir.WriteConditions(dir, []health.Condition{{Name: "disk", Reason: "full", Blocks: true}, aside}); err != nil {
		t.Fatal(err)
	}
	got := examined(dir).running()
	if len(got) != 1 || got[0].Level != Warn || got[0].Found != aside.Reason || got[0].Do != "writ audit fsck --data "+dir {
		t.Errorf("%+v", got)
	}
}
