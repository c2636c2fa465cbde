package router_test

import (
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

const day = 24 * time.Hour

// What may have been removed follows from all retentions that were ever in force, each for its
// time; what is to be removed follows from the one in force.
func TestRetention(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	put := func(tenant, key, value string) {
		t.Helper()
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: tenant, Data: &catalog.Data{Key: key, Value: json.RawMessage(value)}}), intents.OK)
	}
	start := w.Clock.Now()
	from := func(after time.Duration, days int) time.Time { return start.Add(after).AddDate(0, 0, -days) }
	want := func(index string, after time.Duration, outdated, removed time.Time) {
		t.Helper()
		for name, d := range map[string]*state.State{"live": w.Dir, "from the records": rebuild(w)} {
			if got := d.RetentionCutoff("default", index, start.Add(after)); outdated.IsZero() != got.IsZero() || got.Sub(outdated).Abs() > time.Hour || got.After(outdated) {
				t.Errorf("%s: %s after %v: outdated before %v, not %v", name, index, after, got, outdated)
			}
			if got := d.RemovedBefore("default", index, start.Add(after)); removed.IsZero() != got.IsZero() || got.Sub(removed).Abs() > time.Hour {
				t.Errorf("%s: %s after %v: removed before %v, not %v", name, index, after, got, removed)
			}
		}
	}
	want(storage.IndexEvents, 100*day, time.Time{}, time.Time{})

	put("default", state.RetentionKey, `{"agent_events": 30}`)
	want(storage.IndexEvents, 100*day, from(100*day, 30), from(100*day, 30))
	want(storage.IndexIntents, 100*day, time.Time{}, time.Time{})

	put("system", state.DefaultRetentionKey, `{"agent_events": 5, "agent_intents": 10}`)
	want(storage.IndexEvents, 100*day, from(100*day, 30), from(100*day, 30)) // the tenant's own counts
	want(storage.IndexIntents, 100*day, from(100*day, 10), from(100*day, 10))

	w.Clock.Move(10 * day)
	put("default", state.RetentionKey, `{"agent_events": 90, "agent_intents": 0}`)
	want(storage.IndexEvents, 11*day, from(11*day, 90), from(10*day, 30)) // what was removed does not come again
	want(storage.IndexEvents, 100*day, from(100*day, 90), from(100*day, 90))
	want(storage.IndexIntents, 100*day, time.Time{}, from(10*day, 10)) // for good, whatever the default
	want(storage.IndexIntents, 5*day, from(5*day, 10), from(5*day, 10))

	w.Clock.Move(day)
	put("default", state.RetentionKey, `null`)
	want(storage.IndexEvents, 50*day, from(50*day, 5), from(50*day, 5)) // the default again
}

// An invalid retention is refused, with its place.
func TestRetentionRefused(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, c := range []struct{ tenant, key, value, pointer string }{
		{"default", state.RetentionKey, `90`, "/intent/args/data/value"},
		{"default", state.RetentionKey, `{"agent_plan": 90}`, "/intent/args/data/value"},
		{"default", state.RetentionKey, `{"agent_souls": 90}`, "/intent/args/data/value/agent_souls"},
		{"default", state.RetentionKey, `{"agent_events": -1}`, "/intent/args/data/value/agent_events"},
		{"default", state.RetentionKey, `{"agent_events": "90d"}`, "/intent/args/data/value/agent_events"},
		{"default", state.RetentionKey, `{"agent_events": 36501}`, "/intent/args/data/value/agent_events"},
		{"default", state.DefaultRetentionKey, `{"agent_events": 90}`, "/intent/args/data/key"},
	} {
		got := w.Admin("admin.put", catalog.AdminPut{Tenant: c.tenant, Data: &catalog.Data{Key: c.key, Value: json.RawMessage(c.value)}})
		w.Want(got, intents.MalformedArgs)
		if got.Pointer != c.pointer {
			t.Errorf("%s %s: at %q, not %q", c.key, c.value, got.Pointer, c.pointer)
		}
	}
	if at := w.Dir.RemovedBefore("default", storage.IndexEvents, w.Clock.Now().Add(1000*day)); !at.IsZero() {
		t.Errorf("removed before %v", at)
	}
}
