//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// tablesMax bounds the page tables of a sandbox, in bytes. No limit of a process counts
// them: mappings of one page each, far apart, need two pages of table each. Usual
// mappings need a five-hundredth of their size.
const tablesMax = 32 << 20

// watchPace is how often page tables are measured.
const watchPace = 20 * time.Millisecond

// watch ends a sandbox that has too much of page tables, until ctx ends.
func (b *Instance) watch(ctx context.Context, over func()) {
	name := "/proc/" + strconv.Itoa(b.proc.Pid) + "/status"
	tick := time.NewTicker(watchPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.exited:
			return
		case <-tick.C:
		}
		if n, ok := pageTables(name); ok && n > tablesMax {
			over()
			return
		}
	}
}

// pageTables is the size of a process's page tables in bytes; false: it is gone.
func pageTables(status string) (int64, bool) {
	f, err := os.Open(status) //nolint:gosec // G304: of a process of ours
	if err != nil {
		return 0, false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), "VmPTE:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		return kib << 10, err == nil
	}
	return 0, false
}
