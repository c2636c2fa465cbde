//go:build integration

package measure

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"aob.dev/writ/audit"
)

// TestIntegrationAuditChangedBit: in a bundle of 2,000 real intents, a changed bit
// is found wherever it is, and the record that it stands in is named.
func TestIntegrationAuditChangedBit(t *testing.T) {
	const total, flips = 2_000, 24
	m, err := makeLog(t.Context(), t.TempDir(), total)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := os.ReadFile(m.bundle)
	if err != nil {
		t.Fatal(err)
	}
	var ends, positions []int // of lines: where each ends, and its record or -1
	next := 0
	for line := range bytes.Lines(bundle) {
		at := -1
		if bytes.HasPrefix(line, []byte(`{"record":`)) {
			at = next
			next++
		}
		last := 0
		if len(ends) > 0 {
			last = ends[len(ends)-1]
		}
		ends, positions = append(ends, last+len(line)), append(positions, at)
	}
	if next < total {
		t.Fatalf("%d records", next)
	}
	random := rand.New(rand.NewPCG(7, 8))
	for range flips {
		i, bit := random.IntN(len(bundle)), random.IntN(8)
		bundle[i] ^= 1 << bit
		r, err := audit.Verify(t.Context(), bytes.NewReader(bundle), audit.Options{Trust: m.trust})
		bundle[i] ^= 1 << bit
		line, _ := slices.BinarySearch(ends, i+1)
		switch at := positions[line]; {
		case line == 0 && errors.Is(err, audit.ErrMalformed):
		case err != nil:
			t.Fatal(err)
		case r.OK || r.FirstBad == nil:
			t.Fatalf("byte %d, bit %d was changed and not found", i, bit)
		case at >= 0 && r.FirstBad.Position != int64(at):
			t.Fatalf("byte %d is in record %d, named is %v", i, at, r.FirstBad)
		}
	}
	for _, cut := range []int{len(bundle) - 1, len(bundle) / 2, ends[len(ends)-2]} {
		if r, err := audit.Verify(t.Context(), bytes.NewReader(bundle[:cut]), audit.Options{Trust: m.trust}); err != nil || r.OK {
			t.Errorf("cut at %d: %+v %v", cut, r, err)
		}
	}
	if r, err := m.verify(context.WithoutCancel(t.Context()), true); err != nil || !r.OK {
		t.Errorf("unchanged: %v %v", r, err)
	}
}

// TestIntegrationAuditMemory: intents stay within their share of what a million may need,
// verified only and replayed, too; an eighth of it does not depend on their number. So it is where garbage
// is collected as usual; with room for garbage they stay within all of it. WRIT_INTENTS says how many.
func TestIntegrationAuditMemory(t *testing.T) {
	total := int64(20_000)
	if text := os.Getenv("WRIT_INTENTS"); text != "" {
		var err error
		if total, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	bound := auditMemory/8 + auditMemory*7/8*float64(total)/1e6
	m, err := makeLog(t.Context(), t.TempDir(), total)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		replay := i%2 == 1
		if i < 2 {
			t.Setenv("GOGC", "100")
			debug.SetGCPercent(100)
		} else {
			t.Setenv("GOGC", "")
			bound = auditMemory
		}
		runtime.GC()
		peak := watchHeap()
		r, err := m.verify(t.Context(), replay)
		top := peak()
		if err != nil || r.Intents < total {
			t.Fatalf("%d intents, %v", r.Intents, err)
		}
		t.Logf("replay %v: %.0f MiB of %.0f", replay, top, bound)
		if top > bound {
			t.Errorf("replay %v: %.0f MiB, more than %.0f", replay, top, bound)
		}
	}
}
