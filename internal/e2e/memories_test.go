package e2e

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// TestMemoriesEnd: what a task has found is found again for seven days, and then no more.
func TestMemoriesEnd(t *testing.T) {
	t.Parallel()
	m := &mind{
		plan: func(planning) model.Call { return steps(step(1, "list the stock", "stock_list", 0, stockShape)) },
		act:  listStock,
	}
	var ahead atomic.Int64
	s := start(t, setup{Model: m, Skills: []string{serveStock(t).url}, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	ana := s.as("ana")
	ana.session = "talk"
	got := s.ask(ana, stockTask)
	key := got.Plan.Steps[0].MemoryKey
	hits := func() (out catalog.MemoryQueryResult) {
		t.Helper()
		if status, p := s.call(ana, http.MethodGet, "/agent/memory/query?query_text=bolt&session_id=talk", nil, &out); status != http.StatusOK {
			t.Fatalf("HTTP %d %+v", status, p)
		}
		return out
	}
	lookup := func() int {
		t.Helper()
		status, _ := s.call(ana, http.MethodPost, "/query/", map[string]string{"mode": "LOOKUP", "query": key}, nil)
		return status
	}
	const week = 7 * 24 * time.Hour
	ahead.Store(int64(week - time.Hour))
	if found := hits(); len(found.Hits) != 1 || found.Hits[0].Key != key || lookup() != http.StatusOK {
		t.Errorf("in a week: %+v", found)
	}
	ahead.Store(int64(week))
	if found := hits(); len(found.Hits) != 0 || lookup() != http.StatusNotFound {
		t.Errorf("after a week: %+v", found)
	}
}
