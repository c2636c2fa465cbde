package node

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"aob.dev/writ/internal/clock"
)

const (
	// restEvery is how often a node looks whether it rests.
	restEvery = 5 * time.Second
	// restAllocates is what a resting node allocates in restEvery at most, in bytes.
	restAllocates = 2 << 20
	// worthFreeing is what a node has allocated, in bytes, before its memory is worth collecting at rest.
	worthFreeing = 32 << 20
)

// freeAtRest returns the memory that work has left to the machine, once the node rests. Otherwise a
// process that does nothing keeps it: the collector runs two minutes later, and retains a tenth more
// than the heap before it had.
func freeAtRest(ctx context.Context) error {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var r rest
	return clock.Loop(ctx, restEvery, func() {
		if metrics.Read(allocated); r.due(allocated[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	})
}

// rest is what a process had allocated since its start, in bytes.
type rest struct {
	seen  uint64 // when it was last looked at
	freed uint64 // when its memory was last returned
}

// due reports whether the process rests, and has done enough since its memory was last returned.
func (r *rest) due(allocated uint64) bool {
	resting := allocated-r.seen <= restAllocates
	r.seen = allocated
	if !resting || allocated-r.freed <= worthFreeing {
		return false
	}
	r.freed = allocated
	return true
}
