package audit

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestRoomy: the collector is set only where the environment does not say how, and set back.
func TestRoomy(t *testing.T) {
	const percent, limit = 77, 1 << 40
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	set := func() (int, int64) {
		p := debug.SetGCPercent(percent)
		debug.SetGCPercent(p)
		return p, debug.SetMemoryLimit(-1)
	}
	for _, x := range []struct {
		gogc, gomemlimit string
		percent          int
		limit            int64
	}{{"", "", gcPercent, memoryLimit}, {"100", "", percent, memoryLimit}, {"", "1GiB", gcPercent, limit}, {"off", "off", percent, limit}} {
		for name, value := range map[string]string{"GOGC": x.gogc, "GOMEMLIMIT": x.gomemlimit} {
			t.Setenv(name, value)
			if value == "" {
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		restore := Roomy()
		if p, l := set(); p != x.percent || l != x.limit {
			t.Errorf("GOGC=%s GOMEMLIMIT=%s: %d, %d", x.gogc, x.gomemlimit, p, l)
		}
		restore()
		if p, l := set(); p != percent || l != limit {
			t.Errorf("GOGC=%s GOMEMLIMIT=%s: %d, %d afterwards", x.gogc, x.gomemlimit, p, l)
		}
	}
}
