package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/executors/memory"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
)

// inSession gives an intent to another session and plan.
func inSession(in executortest.Intent, session string) executortest.Intent {
	in.Context.SessionID, in.Context.PlanID = session, "plan_"+session
	return in
}

// TestLockWaits: another session that writes the same user memory waits at most
// 5 s, then it is MEMORY_LOCK, retryable.
func TestLockWaits(t *testing.T) {
	b := open(t)
	b.Must(t, inSession(scoped(write(task("task_1", 1), "x", rows), "user"), "sess_1"), nil)
	began := b.clock()
	in := inSession(scoped(write(task("task_9", 1), "x", rows), "user"), "sess_2")
	r := b.Do(t, in)
	if r.Code != intents.MemoryLock || !r.Retryable {
		t.Fatalf("%+v", r)
	}
	if waited := b.clock().Sub(began); waited != memory.LockWait {
		t.Errorf("waited %s", waited)
	}
	if f := executortest.EventPayload(t, r, "memory.lock_timeout"); f["lock_wait_ms"] != 5000.0 || f["label"] != "x" || f["scope"] != "user" {
		t.Errorf("fact %v", f)
	}
	if r := b.Do(t, inSession(read("acme:sess_2:task_9:x", false), "sess_2")); r.Code != intents.NotFound {
		t.Errorf("it was written: %+v", r)
	}
	// Other owners, labels and scopes do not contend.
	bob := inSession(scoped(write(task("task_9", 1), "x", rows), "user"), "sess_2")
	bob.Ticket.Actor.UserID = "bob"
	for _, free := range []executortest.Intent{
		bob,
		inSession(scoped(write(task("task_9", 1), "y", rows), "user"), "sess_2"),
		inSession(scoped(write(task("task_9", 1), "x", rows), "session"), "sess_2"),
		inSession(scoped(write(task("task_9", 1), "x", rows), "tenant"), "sess_2"),
	} {
		if got := executortest.EventPayload(t, b.Must(t, free, nil), "memory.written")["lock_wait_ms"]; got != 0.0 {
			t.Errorf("waited %v ms", got)
		}
	}
}

// TestLockReleased: the waiting task goes on when the manager confirms, and its
// wait is among the facts.
func TestLockReleased(t *testing.T) {
	b := open(t)
	b.Must(t, inSession(scoped(write(task("task_1", 1), "x", rows), "user"), "sess_1"), nil)
	waits := 0
	b.onWait = func(time.Duration) {
		if waits++; waits == 3 {
			b.Must(t, inSession(read("acme:sess_1:task_1:x", true), "sess_1"), nil)
		}
	}
	r := b.Must(t, inSession(scoped(write(task("task_9", 1), "x", rows), "user"), "sess_2"), nil)
	if got := executortest.EventPayload(t, r, "memory.written")["lock_wait_ms"]; got != 150.0 {
		t.Errorf("waited %v ms", got)
	}
	// A confirmation that comes late does not take the next holder's lock away.
	b.onWait = nil
	b.Must(t, inSession(read("acme:sess_1:task_1:x", true), "sess_1"), nil)
	if r := b.Do(t, inSession(scoped(write(task("task_1", 1), "x", rows), "user"), "sess_1")); r.Code != intents.MemoryLock {
		t.Errorf("%+v", r)
	}
}

// TestLockLease: a holder that is gone blocks for 30 s and no longer.
func TestLockLease(t *testing.T) {
	b := open(t)
	b.Must(t, inSession(scoped(write(task("task_1", 1), "x", rows), "user"), "sess_1"), nil)
	b.advance(memory.LockLease - memory.LockWait - time.Millisecond)
	in := inSession(scoped(write(task("task_9", 1), "x", rows), "user"), "sess_2")
	if r := b.Do(t, in); r.Code != intents.MemoryLock {
		t.Fatalf("%+v", r)
	}
	b.advance(time.Millisecond)
	b.Must(t, in, nil)
}

// TestLockOfTheSameStep: a task that takes a step over takes its locks over: the
// older task is dead.
func TestLockOfTheSameStep(t *testing.T) {
	b := open(t)
	b.Must(t, write(task("task_1", 1), "x", rows), nil)
	for _, in := range []executortest.Intent{write(task("task_1", 1), "x", rows), write(task("task_3", 1), "x", rows)} {
		if got := executortest.EventPayload(t, b.Must(t, in, nil), "memory.written")["lock_wait_ms"]; got != 0.0 {
			t.Errorf("waited %v ms", got)
		}
	}
	if r := b.Do(t, write(task("task_4", 2), "x", rows)); r.Code != intents.MemoryLock {
		t.Errorf("another step: %+v", r)
	}
	asked := task("task_5", 1) // beside the step's own task
	asked.Ask = "1.0"
	if r := b.Do(t, write(asked, "x", rows)); r.Code != intents.MemoryLock {
		t.Errorf("an ask in the same step: %+v", r)
	}
}

// TestLockRace: of tasks that want one lock at once, exactly one gets it.
func TestLockRace(t *testing.T) {
	b := open(t)
	// All move one clock: together they wait less than the lease, however they are scheduled.
	const writers = int(memory.LockLease / memory.LockWait)
	var group sync.WaitGroup
	won := make(chan string, writers)
	list := make([]executortest.Intent, writers)
	for i := range list {
		in := inSession(scoped(write(task(fmt.Sprintf("task_%d", i), 1), "x", rows), "user"), fmt.Sprintf("sess_%d", i))
		in.Ticket.Deadline = b.clock().Add(time.Hour) // all move one clock
		list[i] = b.Fill(in)
	}
	for _, in := range list {
		d := b.Sign(t, in)
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			var r intents.Report
			if err := json.Unmarshal(b.Service.Handle(context.WithoutCancel(t.Context()), "", raw), &r); err != nil {
				t.Error(err)
			}
			switch r.Code {
			case intents.OK:
				won <- in.Context.SessionID
			case intents.MemoryLock:
			default:
				t.Errorf("%+v", r)
			}
		})
	}
	group.Wait()
	close(won)
	if len(won) != 1 {
		t.Errorf("%d writers hold one lock", len(won))
	}
}

// TestLocksAreNoMemories: a lock is recorded with holder and end, and
// nobody reads or finds it as a memory.
func TestLocksAreNoMemories(t *testing.T) {
	b := open(t)
	b.Must(t, scoped(write(task("task_1", 1), "x", rows), "user"), nil)
	doc, err := b.docs.Get(t.Context(), "acme", storage.IndexMemory, ":lock:user:ana:x")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		LockedBy    string    `json:"locked_by"`
		LockExpires time.Time `json:"lock_expires"`
	}
	if err := json.Unmarshal(doc.Body, &lock); err != nil || lock.LockedBy != "sess_1:task_1" || !lock.LockExpires.Equal(b.clock().Add(memory.LockLease)) {
		t.Errorf("%+v, %v", lock, err)
	}
	if r := b.Do(t, read("acme:sess_1:task_1:lock", false)); r.Code != intents.NotFound {
		t.Errorf("%+v", r)
	}
	for _, hit := range b.query(t, "x ana task_1 lock", "", 50) {
		if hit.Key != "acme:sess_1:task_1:x" {
			t.Errorf("found %+v", hit)
		}
	}
}

// TestProvenance: a memory says who wrote it, by which intent, and what the step
// could call; its fact says so too.
func TestProvenance(t *testing.T) {
	b := open(t)
	scope := task("task_1", 1)
	scope.Skills = []string{"feed", "prices"}
	in := b.Fill(write(scope, "x", rows))
	dispatch := b.Sign(t, in)
	r := b.Send(t, dispatch)
	if skills, ok := executortest.EventPayload(t, r, "memory.written")["skills"].([]any); !ok || len(skills) != 2 || skills[0] != "feed" {
		t.Errorf("%+v", r)
	}
	page, err := b.docs.Search(t.Context(), "acme", storage.IndexMemory, storage.Query{Terms: map[string][]string{
		"skills": {"prices"}, "user_id": {"ana"}, "source": {intents.IntentID(dispatch.Header, dispatch.Payload)},
	}})
	if err != nil || len(page.Documents) != 1 || page.Documents[0].ID != "acme:sess_1:task_1:x" {
		t.Errorf("%+v, %v", page, err)
	}
}
