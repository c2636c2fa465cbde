package node

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
)

// TestFloodOfFrames: in a running node, a tenant that floods the stream of display frames loses
// its own older ones, and a frame of another tenant can still be read.
func TestFloodOfFrames(t *testing.T) {
	n := open(t, config(t.TempDir()))
	run(t, n)
	manager, frames := n.conns.of(natsserver.Manager), n.conns.of(natsserver.Frames)
	say := func(tenant string, number, size int) {
		t.Helper()
		raw, err := json.Marshal(map[string]any{"number": number, "text": strings.Repeat("x", size)})
		if err != nil {
			t.Fatal(err)
		}
		if err := manager.Publish(bus.Turn(tenant, "t1"), raw); err != nil {
			t.Fatal(err)
		}
	}
	first := func(tenant string) (number int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := frames.Frames(ctx, bus.Turn(tenant, "t1"), 0, func(f bus.Frame) bool {
			var d struct{ Number int }
			if err := json.Unmarshal(f.Data, &d); err != nil {
				t.Error(err)
			}
			number = d.Number
			return false
		})
		if err != nil {
			t.Fatalf("no frame of %s can be read: %v", tenant, err)
		}
		return number
	}
	say("modest", 1, 100)
	const size, batch, fits = 512 << 10, 50, 96 // of 64 MiB, a quarter stays free
	for number := 1; number <= 5*batch; number++ {
		say("greedy", number, size)
		if number%batch > 0 {
			continue
		}
		for end := time.Now().Add(patience); number-first("greedy") >= fits; {
			if time.Now().After(end) {
				t.Fatalf("after %d frames the oldest of the flood is still number %d", number, first("greedy"))
			}
		}
	}
	if got := first("modest"); got != 1 {
		t.Errorf("the first frame of the other tenant is %d", got)
	}
}
