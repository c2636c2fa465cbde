package monitor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// perSecond calls of a skill.
const perSecond = 100

// minute writes what the recorder writes for a minute at perSecond: an event and a row of each
// call.
func (h *house) minute(at time.Time) {
	h.Helper()
	var events, calls []storage.Document
	for i := range 60 * perSecond {
		h.n++
		id := fmt.Sprintf("%012d-00", h.n)
		ts := intents.FormatTime(at.Add(time.Duration(i) * time.Second / perSecond))
		add := func(list *[]storage.Document, members map[string]any) {
			members["event_id"], members["tenant_id"], members["position"], members["ts"] = id, "default", h.n, ts
			body, err := json.Marshal(members)
			if err != nil {
				h.Fatal(err)
			}
			*list = append(*list, storage.Document{ID: id, Position: h.n, Body: body})
		}
		typ := []string{"memory.written", "subagent.finish", "skill.called", "intent.accepted"}[i%4]
		add(&events, map[string]any{"event_type": typ, "plan_id": fmt.Sprint("plan_", h.n/50), "payload": map[string]any{"duration_ms": i % 90, "lock_wait_ms": i % 9}, "seq": 0})
		add(&calls, map[string]any{"intent_id": intents.Digest([]byte(id)), "user_id": "ana", "skill_id": "crm.pay", "status": "done", "code": "OK"})
	}
	for index, docs := range map[string][]storage.Document{storage.IndexEvents: events, storage.IndexSkillCalls: calls} {
		for ; len(docs) > 0; docs = docs[min(500, len(docs)):] {
			if _, err := h.docs.Create(h.Context(), "default", index, docs[:min(500, len(docs))]...); err != nil {
				h.Fatal(err)
			}
		}
	}
}

// underLoad writes minutes of records, while the monitor reads the earlier ones, and returns the
// greatest length of the write-ahead log.
func (h *house) underLoad(minutes int) (longest int64) {
	h.Helper()
	w := h.watch()
	looking := make(chan error, 1)
	looking <- nil
	for m := range minutes {
		if err := <-looking; err != nil {
			h.Fatal(err)
		}
		h.now = noon.Add(time.Duration(m) * time.Minute)
		go func() { looking <- w.Look(h.Context()) }()
		h.minute(h.now)
		if info, err := os.Stat(filepath.Join(h.dir, "documents.db-wal")); err == nil {
			longest = max(longest, info.Size())
		}
	}
	if err := <-looking; err != nil {
		h.Fatal(err)
	}
	h.now = noon.Add(time.Duration(minutes)*time.Minute + 5*time.Second)
	h.look(w)
	if got := w.Last(); got.Calls != int64(minutes*60*perSecond) {
		h.Errorf("%d calls in %d minutes", got.Calls, minutes)
	}
	return longest
}

// longestLog bounds the write-ahead log under load.
const longestLog = 200 << 20

// TestMonitorUnderLoad: while the monitor repeatedly reads records of a hundred calls a second, the
// write-ahead log stays short, and everything is counted exactly once.
func TestMonitorUnderLoad(t *testing.T) {
	if longest := newHouse(t).underLoad(4); longest > longestLog {
		t.Errorf("the write-ahead log had %d MiB", longest>>20)
	}
}
