//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
)

// idRange allocates uids (and equal gids) that no account and no other run on this
// machine has, so that no sandbox shares an owner with anything.
type idRange struct {
	base, size int64
	counter    atomic.Int64
}

// Ranges above those that distributions and systemd give to accounts and
// containers; the second for a container that maps only 65536 ids.
var (
	wideIDs   = [2]int64{1_900_000_000, 1 << 24}
	narrowIDs = [2]int64{40_000, 20_000}
)

func newIDRange() (*idRange, error) {
	raw, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	for _, r := range [][2]int64{wideIDs, narrowIDs} {
		if mapped(string(raw), r[0], r[1]) {
			ids := &idRange{base: r[0], size: r[1]}
			// So that another process begins elsewhere.
			ids.counter.Store(rand.Int64N(r[1])) //nolint:gosec // G404: no secret
			return ids, nil
		}
	}
	return nil, fmt.Errorf("no free uids are mapped into this container")
}

func (r *idRange) next() int {
	return int(r.base + r.counter.Add(1)%r.size)
}

// mapped reports whether one line of a uid_map covers ids first to first+n-1.
func mapped(uidMap string, first, n int64) bool {
	for line := range strings.Lines(uidMap) {
		var inside, outside, size int64
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err != nil {
			continue
		}
		if first >= inside && first+n <= inside+size {
			return true
		}
	}
	return false
}
