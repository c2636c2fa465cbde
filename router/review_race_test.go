package router_test

import (
	"context"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/storage"
)

// between runs something else between two steps of one submission, once.
type between struct {
	storage.Journal
	lookup, commit func()
}

func (b *between) Lookup(ctx context.Context, k storage.Key) (storage.Holder, bool, error) {
	if run := b.lookup; run != nil {
		b.lookup = nil
		run()
	}
	return b.Journal.Lookup(ctx, k)
}

func (b *between) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if run := b.commit; run != nil {
		b.commit = nil
		run()
	}
	return b.Journal.Commit(ctx, c)
}

func interposed(t *testing.T) (*routertest.World, *between) {
	t.Helper()
	b := &between{}
	return routertest.New(t, routertest.Options{Wrap: func(j storage.Journal) storage.Journal {
		b.Journal = j
		return b
	}}), b
}

// Directory data that changes while an order is decided decides it: a policy
// never answers for data that is gone when the order is committed.
func TestPolicyDataChangesDuringADecision(t *testing.T) {
	w, b := interposed(t)
	task := started(w, catalog.Pure)
	b.lookup = func() { w.Data("python", "false") }
	w.Want(w.Do(task.Order("exec_python", catalog.ExecPython{Script: "print(1)"})), intents.PolicyDenied)
	if n := len(w.Bus.Calls("exec_python")); n != 0 {
		t.Errorf("%d scripts ran", n)
	}
}
