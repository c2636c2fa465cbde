package router_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/router"
	"aob.dev/writ/router/routertest"
)

// refusals of a flood, and how much of it has a signature to check, which is slow.
const (
	refusals    = 100_000
	signedShare = 50      // one in so many of each kind
	heapRoom    = 4 << 20 // bytes
)

// A hundred thousand refused envelopes, each another one, leave the heap where
// it was: of those that do not parse, that nobody signed, that are of unknown
// keys, and that are above a rate nothing is kept.
func TestRefusedEnvelopesLeaveNothing(t *testing.T) {
	w := routertest.New(t, routertest.Options{Rates: router.Rates{Signer: 1, Tenant: 1}})
	t.Cleanup(w.RunRouter())
	forged, unknown := w.Seal(find(w)), []byte(nil)
	o := find(w)
	o.By = w.NewKey(intents.RolePlanner)
	unknown = w.Seal(o)
	good := w.Seal(find(w))
	w.Want(w.Send(good), intents.OK)

	flood := func(n int) {
		seen := map[intents.Code]int{}
		for i := range n {
			raw := fmt.Appendf(nil, `{"version":"1.0","n":"%x"`, i)
			switch {
			case i%signedShare == 0: // another signature each time
				raw = bytes.Clone(forged)
				binary.LittleEndian.PutUint16(raw[bytes.Index(raw, []byte("quakes")):], 0x6161+uint16(i%20))
			case i%signedShare == 1:
				raw = unknown
			case i%signedShare == 3:
				raw = fmt.Appendf(nil, `{"version":"1.0","n":"%x"}`, i) // without a signature
			case i%signedShare == 2:
				raw = good // again and again: above its rate
			}
			a := w.Send(raw)
			if seen[a.Code]++; a.Code == intents.OK && !a.Replayed {
				t.Fatalf("%s", raw)
			}
		}
		for _, code := range []intents.Code{intents.SchemaInvalid, intents.SignatureInvalid, intents.KeyUnknown, intents.RateLimited} {
			if seen[code] == 0 {
				t.Errorf("no %s among %v", code, seen)
			}
		}
	}
	flood(2000) // what is made once is made
	before := heap()
	flood(refusals)
	if after := heap(); after > before+heapRoom {
		t.Errorf("%d KiB before, %d KiB after %d refusals", before>>10, after>>10, refusals)
	} else {
		t.Logf("%d KiB before, %d KiB after %d refusals", before>>10, after>>10, refusals)
	}
}

// heap is what is reachable, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
