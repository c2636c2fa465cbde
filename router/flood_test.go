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

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/router"
	"aob.dev/writ/router/routertest"
)

// refusals of a flood, and how much of it has a signature to check, which is slow.
const (
	refusals    = 100_000
	signedShare = 50      // one in so many of each kind
	heapRoom    = 4 << 20 // bytes
	// residentRoom is wider: the runtime, and the race detector's shadow of what was
	// touched, take and give back pages as they like. It is 320 bytes for each of half.
	residentRoom = 16 << 20
)

// A hundred thousand refused envelopes, each another one, leave heap and
// process where they were: of those that do not parse, that nobody signed, that are of unknown
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

// The entrance on NATS records as little of a flood as that over HTTP: one by one
// and in batches, of a key that is above its rate and of one whose task has ended.
func TestFloodOverNATSIsCounted(t *testing.T) {
	const flood, burst = 200, 9 // of ten seconds' worth the plan took one
	c := serveWith(t, routertest.Options{Rates: router.Rates{Signer: 1}})
	c.Pin("feed", catalog.Pure)
	task := c.Begun("p1", "feed").Started(1)
	c.Want(task.Cancel(c.Gateway), intents.OK) // with its plan
	agent := c.connect(natsserver.Manager)
	for name, base := range map[string]struct {
		order routertest.Order
		kept  int
	}{"above its rate": {find(c.World), burst}, "ended task": {task.Order("skill.call", nil), 0}} {
		orders, from, stop := c.Flood(base.order, flood), c.Journal.Next(), c.RunRouter()
		refused := int64(0)
		for _, raw := range orders {
			reply, err := agent.Request(t.Context(), bus.Orders, raw)
			c.Must(err)
			var a intents.Answer
			if c.Must(json.Unmarshal(reply, &a)); a.Position == nil && a.Code != intents.OK {
				refused++
			}
		}
		for i := range 20 {
			reply, err := agent.Request(t.Context(), bus.Batches, batchOf(orders[i], orders[i+1]))
			c.Must(err)
			var b intents.BatchAnswer
			if c.Must(json.Unmarshal(reply, &b)); b.Code == intents.OK {
				t.Errorf("%s: %+v", name, b)
			}
		}
		stop()
		counted := int64(0)
		s := c.Spent(from)
		for _, n := range s.Counted {
			counted += n
		}
		if s.Orders != base.kept || s.Bytes > base.kept*(64<<10) || refused != int64(flood-base.kept) || counted != refused+20 {
			t.Errorf("%s: %d refused without a record; kept %+v", name, refused, s)
		}
	}
}

// resident is what the process holds of the machine's memory when all that is not
// reachable has been given back, in bytes; 0 where the system does not say.
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

// heap is what is reachable, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
