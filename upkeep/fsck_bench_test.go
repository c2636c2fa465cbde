package upkeep

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
)

// BenchmarkFsck checks the data directory of intents whose arguments have 2 KB, and reports the
// milliseconds of processor time for each KB of them.
func BenchmarkFsck(b *testing.B) {
	const puts, kilobytes = 1000, 2
	dir := b.TempDir()
	n, err := node.Open(b.Context(), config(dir))
	must(b, err)
	stop := run(b, n)
	for i := range puts {
		value, err := json.Marshal(fmt.Sprint(i, strings.Repeat("é ", kilobytes<<10/3)))
		must(b, err)
		must(b, submit(b.Context(), n, config(dir), "admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "x.note", Value: value}}))
	}
	must(b, stop())
	must(b, n.Close())
	used := func() time.Duration {
		var u syscall.Rusage
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := used()
	for b.Loop() {
		if h, err := Fsck(b.Context(), dir, nil); err != nil || !h.OK || !h.Compared {
			b.Fatal(h, err)
		}
	}
	b.ReportMetric(float64((used()-began).Microseconds())/1000/float64(b.N*puts*kilobytes), "ms/KB")
}
