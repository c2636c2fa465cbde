package audit

import (
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/storage"
)

// TestFoldForgets: keys that are free again, and erased tasks of plans that have left,
// are not kept for as long as the log is. Keys that are taken are.
func TestFoldForgets(t *testing.T) {
	f := newFold()
	began := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	key := func(n int) storage.Key { return storage.OrderKey("default", "ana", "skill.find", fmt.Sprint(n)) }
	f.taken[key(-1)] = holder{position: 0} // open for all the time
	const orders, hour = 100_000, 100
	most := 0
	for n := range orders {
		at := began.Add(time.Duration(n) * time.Hour / hour)
		f.taken[key(n)] = holder{int64(n), at.Unix()}
		f.erased[fmt.Sprint("default/task_", n)] = true
		f.latest = at
		f.pass(&item{Record: storage.Record{Position: int64(n), At: at}})
		most = max(most, len(f.taken), len(f.erased))
	}
	if _, open := f.taken[key(-1)]; !open || most > 3*24*hour {
		t.Errorf("%d keys and tasks at most, of an open order: %v", most, open)
	}
	for n := range orders {
		h, there := f.taken[key(n)]
		if taken := n > orders-24*hour; taken && (!there || h.free(f.latest)) || there && h.position != int64(n) {
			t.Fatalf("order %d of %d: %v, %+v", n, orders, there, h)
		}
	}
}
