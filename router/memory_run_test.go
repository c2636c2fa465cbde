package router_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// shortRuns is how many runs TestRunsLeaveMemory makes; unset, it is a few.
const shortRuns = "WRIT_RUNS"

// TestRunsLeaveMemory: runs that have ended and been removed are no longer in memory. Their records
// are on disk. Two caches of a fixed size grow until they are full: the last 65,536 commits of the
// journal, and 4,096 grants; some 7,000 runs fill them.
func TestRunsLeaveMemory(t *testing.T) {
	runs := 200
	if n, err := strconv.Atoi(os.Getenv(shortRuns)); err == nil {
		runs = n
	}
	w := routertest.New(t, routertest.Options{Open: func(observe storage.Observer) routertest.Journal {
		j, err := sqlite.OpenJournal(t.Context(), t.TempDir(), sqlite.JournalOptions{Observer: observe, FreeFloor: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}})
	w.Pin("s.pure", catalog.Pure)
	w.PushAgents(1, map[string]string{"workflows/short": `workflow_id: short
version: "1"
description: Two nodes and one that is skipped.
nodes:
  - {id: a, type: function, fn: s.pure, inputs: {n: 1}}
  - {id: b, type: function, fn: s.pure, inputs: {n: "${nodes.a.outputs.count}"}}
  - {id: c, type: function, fn: s.pure, inputs: {n: 3}}
edges:
  - {from: a, to: b}
  - {from: a, to: c, condition: "nodes.a.outputs.count > 9"}
`})
	w.Bus.On("skill.call", leads)
	leave := func() { // two days later; the next end removes those before it
		w.Clock.Move(state.PlanKept + storage.KeptFor)
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: []byte(`{"once":false}`)}}), intents.OK)
	}
	carryOut := func(from, to int) {
		for i := from; i < to; i++ {
			r := w.BegunRun(fmt.Sprint("r", i), "short", `{}`)
			runNodes(t, r, catalog.PlanDetails{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
			if i%50 == 49 {
				leave()
			}
		}
		leave()
		w.Bus.Forget()
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	carryOut(0, runs/4*3)
	before := heap()
	carryOut(runs/4*3, runs)
	after := heap()
	if held := w.Router.Counts().Stats; held.Open != 0 || held.Closed != 0 || held.Tasks != 0 {
		t.Errorf("in memory: %+v", held)
	}
	t.Logf("%d runs: a heap of %.1f MB after three quarters of them, %.1f MB after all", runs, float64(before)/1e6, float64(after)/1e6)
	if after-before > 2e6 {
		t.Errorf("the heap has grown by %d bytes", after-before)
	}
}
