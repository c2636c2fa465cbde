package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/executors/memory"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// writers is how many sessions of one user write one memory at once.
const writers = 100

// writersLoseNothing: writers of one user memory in sessions of their own take
// turns: between a write and its manager's confirmation no other one writes. Who
// waited too long is told so and sends the intent again; in the end every memory is
// there as it was written.
func writersLoseNothing(t *testing.T, docs storage.Documents) {
	t.Helper()
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := executortest.New(t, memory.Name, nil, memory.Handlers(memory.Config{Documents: docs, Blobs: blobs, Now: time.Now}))
	var signing sync.Mutex
	signed := func(in executortest.Intent, session string) []byte {
		signing.Lock()
		defer signing.Unlock()
		in = inSession(in, session)
		in.Ticket.Deadline = time.Now().Add(time.Hour)
		raw, err := json.Marshal(e.Sign(t, e.Fill(in)))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	ctx := context.WithoutCancel(t.Context())
	send := func(intent []byte) (r intents.Report) {
		if err := json.Unmarshal(e.Service.Handle(ctx, "", intent), &r); err != nil {
			t.Error(err)
		}
		return r
	}
	var group sync.WaitGroup
	var holders, waited atomic.Int64
	key := func(i int) string { return fmt.Sprintf("acme:sess_%d:task_%d:likes", i, i) }
	data := func(i int) string { return fmt.Sprintf(`[{"id":"writer %d","score":%d}]`, i, i) }
	for i := range writers {
		session := fmt.Sprintf("sess_%d", i)
		put := func(attempt int) []byte {
			in := scoped(write(task(fmt.Sprintf("task_%d", i), 1), "likes", data(i)), "user")
			in.Ticket.Attempt = attempt // the report of an earlier one is kept
			return signed(in, session)
		}
		look, confirm := signed(read(key(i), false), session), signed(read(key(i), true), session)
		group.Go(func() {
			r := send(put(1))
			for attempt := 2; r.Code == intents.MemoryLock && r.Retryable; attempt++ {
				waited.Add(1)
				r = send(put(attempt))
			}
			if r.Code != intents.OK {
				t.Errorf("writer %d: %+v", i, r)
				return
			}
			if n := holders.Add(1); n != 1 {
				t.Errorf("%d writers hold one lock", n)
			}
			if r := send(look); r.Code != intents.OK {
				t.Errorf("manager %d: %+v", i, r)
			}
			holders.Add(-1)
			if r := send(confirm); r.Code != intents.OK {
				t.Errorf("confirmation %d: %+v", i, r)
			}
		})
	}
	group.Wait()
	for i := range writers {
		var r intents.Report
		if r = send(signed(read(key(i), false), "sess_reader")); r.Code != intents.OK {
			t.Fatalf("memory %d: %+v", i, r)
		}
		var got catalog.ReadMemoryResult
		if err := json.Unmarshal(r.Result, &got); err != nil || string(got.Data) != data(i) {
			t.Errorf("memory %d: %s, %v", i, got.Data, err)
		}
	}
	t.Logf("%d writers, %d of their intents waited %s in vain", writers, waited.Load(), memory.LockWait)
}

func TestWritersLoseNothing(t *testing.T) { writersLoseNothing(t, embedded(t)) }
