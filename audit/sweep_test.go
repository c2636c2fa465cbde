package audit

import (
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/storage"
)

// TestApplierForgets: keys that are free again, and erased tasks of plans that were removed,
// are dropped. Keys that are taken are retained.
func TestApplierForgets(t *testing.T) {
	f := newApplier()
	began := time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)
	key := func(n int) storage.Key {
		return storage.NewIntentKeys(nil).Key("default", "ana", "skill.find", fmt.Sprint(n))
	}
	f.idempotency[key(-1)] = holder{position: 0} // open for all the time
	const total, hour = 100_000, 100
	most := 0
	for n := range total {
		at := began.Add(time.Duration(n) * time.Hour / hour)
		f.idempotency[key(n)] = holder{position: int64(n), ended: at.Unix()}
		f.erased[fmt.Sprint("default/task_", n)] = true
		f.latest = at
		f.pass(&item{Record: storage.Record{Position: int64(n), At: at}})
		most = max(most, len(f.idempotency), len(f.erased))
	}
	if _, open := f.idempotency[key(-1)]; !open || most > 3*24*hour {
		t.Errorf("%d keys and tasks at most, of an open intent: %v", most, open)
	}
	for n := range total {
		h, there := f.idempotency[key(n)]
		if taken := n > total-24*hour; taken && (!there || h.free(f.latest)) || there && h.position != int64(n) {
			t.Fatalf("intent %d of %d: %v, %+v", n, total, there, h)
		}
	}
}
