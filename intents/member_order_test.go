package intents

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestNamesCostInProportion: names out of order and beyond ASCII cost in
// proportion to their number, not to how often they are compared.
func TestNamesCostInProportion(t *testing.T) {
	const n = 4000
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"é%04d":0`, i*1237%n)
	}
	raw := []byte("{" + strings.Join(members, ",") + "}")
	allocs := testing.AllocsPerRun(3, func() {
		if _, err := Canonical(raw); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 20*n {
		t.Errorf("%.0f allocations for %d names", allocs, n)
	}
}

// TestNamesOfOneObject: the order is that of UTF-16 code units, whether or not a
// name is written with escapes.
func TestNamesOfOneObject(t *testing.T) {
	ascending := []string{``, `\n`, `!`, `a`, `a\"`, `aa`, `é`, "\U0001F600", "\uE000", "\uFFFD"}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := compareNames(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

// TestDiagnosisIsLinear: a violation is found without writing out the place
// of every valid value.
func TestDiagnosisIsLinear(t *testing.T) {
	raw := []byte(`{"` + strings.Repeat("x", 1<<17) + `":[` + strings.Repeat("0,", 1<<16) + `-0]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Canonical(raw)
	runtime.ReadMemStats(&after)
	if CodeOf(err) != SchemaInvalid {
		t.Fatal(err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256*uint64(len(raw)) {
		t.Errorf("%d bytes allocated for %d", allocated, len(raw))
	}
}
