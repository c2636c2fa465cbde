package router_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router"
)

// refusals of a flood, and the share of it that has a signature to check, which is slow.
const (
	refusals    = 100_000
	signedShare = 50      // one in so many of each kind
	heapRoom    = 4 << 20 // bytes
	// residentRoom is wider: the runtime, and the race detector's shadow memory, take and return
	// pages at will. It is 320 bytes for each of half.
	residentRoom = 16 << 20
)

// A hundred thousand different refused envelopes leave heap and process as they were: nothing is
// retained of those that do not parse, that are unsigned, that are of unknown keys, and that are
// above a rate.
func TestRefusedEnvelopesLeaveNothing(t *testing.T) {
	w := routertest.New(t, routertest.Options{Rates: router.Rates{Signer: 1, Tenant: 1}})
	t.Cleanup(w.RunRouter())
	forged, unknown := w.Sign(find(w)), []byte(nil)
	o := find(w)
	o.By = w.NewKey(intents.RolePlanner)
	unknown = w.Sign(o)
	good := w.Sign(find(w))
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
	flood(2000) // one-time allocations are made here
	before := heap()
	flood(refusals / 2)
	half := resident(t)
	flood(refusals / 2)
	whole, after := resident(t), heap()
	t.Logf("heap: %d KiB before, %d KiB after; resident: %d KiB after a half, %d KiB after all", before>>10, after>>10, half>>10, whole>>10)
	if after > before+heapRoom {
		t.Errorf("%d refusals leave %d KiB of heap", refusals, (after-before)>>10)
	}
	if whole > half+residentRoom {
		t.Errorf("%d refusals leave %d KiB of the process", refusals/2, (whole-half)>>10)
	}
}

// The NATS interface records as little of a flood as the HTTP interface: one by one and in batches,
// of a key that is above its rate and of one whose task has ended.
func TestFloodOverNATSIsCounted(t *testing.T) {
	const flood, burst = 200, 9 // of ten seconds' worth the plan took one
	c := serveWith(t, routertest.Options{Rates: router.Rates{Signer: 1}})
	c.Pin("feed", catalog.Pure)
	task := c.Begun("p1", "feed").Started(1)
	c.Want(task.Cancel(c.Gateway), intents.OK) // with its plan
	agent := c.connect(natsserver.Manager)
	for name, base := range map[string]struct {
		intent routertest.Intent
		kept   int
	}{"above its rate": {find(c.World), burst}, "ended task": {task.Intent("skill.call", nil), 0}} {
		raws, from, stop := c.Flood(base.intent, flood), c.Journal.Next(), c.RunRouter()
		refused := int64(0)
		for _, raw := range raws {
			reply, err := agent.Request(t.Context(), bus.Intents, raw)
			c.Must(err)
			var a intents.Answer
			if c.Must(json.Unmarshal(reply, &a)); a.Position == nil && a.Code != intents.OK {
				refused++
			}
		}
		for i := range 20 {
			reply, err := agent.Request(t.Context(), bus.Batches, batchOf(raws[i], raws[i+1]))
			c.Must(err)
			var b intents.BatchAnswer
			if c.Must(json.Unmarshal(reply, &b)); b.Code == intents.OK {
				t.Errorf("%s: %+v", name, b)
			}
		}
		stop()
		counted := int64(0)
		s := c.Usage(from)
		for _, n := range s.Counted {
			counted += n
		}
		if s.Intents != base.kept || s.Bytes > base.kept*(64<<10) || refused != int64(flood-base.kept) || counted != refused+20 {
			t.Errorf("%s: %d refused without a record; kept %+v", name, refused, s)
		}
	}
}

// resident is the process's resident memory after all unreachable memory has been returned, in
// bytes; 0 if the system does not report it.
func resident(t *testing.T) uint64 {
	t.Helper()
	debug.FreeOSMemory()
	raw, err := os.ReadFile("/proc/self/statm")
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}

// heap is the reachable memory in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
