package audit

import (
	"os"
	"runtime/debug"
)

const (
	gcPercent   = 300
	memoryLimit = 1 << 30
)

// Roomy has the process collect garbage when its heap is four times what it uses instead of twice,
// and earlier where that is more than memoryLimit: for a batch, which has the machine for itself. If
// what it uses comes near the limit, the runtime spends up to half of the processors on collecting. What
// GOGC and GOMEMLIMIT say stays. restore sets what was there before.
func Roomy() (restore func()) {
	percent, limit := gcPercent, int64(memoryLimit)
	if os.Getenv("GOMEMLIMIT") != "" {
		limit = -1 // no change
	}
	limit = debug.SetMemoryLimit(limit)
	if os.Getenv("GOGC") != "" {
		return func() { debug.SetMemoryLimit(limit) }
	}
	percent = debug.SetGCPercent(percent)
	return func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(percent) }
}
