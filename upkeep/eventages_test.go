package upkeep

import (
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// TestEventsGoByAge: events and calls of skills are removed after the tenant's retention in days;
// the younger ones and those of other tenants stay.
func TestEventsGoByAge(t *testing.T) {
	dir := t.TempDir()
	keep(t, config(dir), "default", state.RetentionKey, `{"agent_events": 30, "agent_skill_calls": 30}`)
	now := time.Now()
	put := func(d storage.Documents, tenant, id string, days int) {
		ts := intents.FormatTime(now.AddDate(0, 0, -days))
		for index, member := range map[string]string{storage.IndexEvents: `"event_type":"x"`, storage.IndexSkillCalls: `"skill_id":"x","status":"done"`} {
			body := fmt.Appendf(nil, `{"event_id":%q,"tenant_id":%q,"ts":%q,%s}`, id, tenant, ts, member)
			n, err := d.Create(t.Context(), tenant, index, storage.Document{ID: id, Body: body})
			if must(t, err); n != 1 {
				t.Fatalf("%s is there", id)
			}
		}
	}
	keeping(t, dir, func(d storage.Documents) {
		put(d, "default", "x-young", 29)
		put(d, "default", "x-old", 31)
		put(d, "system", "x-old", 31)
	})
	for _, want := range []int{2, 0} {
		if c, err := Collect(t.Context(), dir, datadir.DocumentsAt{}, now); err != nil || c.Old != want {
			t.Errorf("%+v %v, want %d", c, err, want)
		}
	}
	keeping(t, dir, func(d storage.Documents) {
		for tenant, want := range map[string][2]bool{"default": {true, false}, "system": {false, true}} {
			for _, index := range []string{storage.IndexEvents, storage.IndexSkillCalls} {
				docs, err := documentsOf(t.Context(), d, tenant, index)
				must(t, err)
				_, young := docs["x-young"]
				_, old := docs["x-old"]
				if got := [2]bool{young, old}; got != want {
					t.Errorf("%s of %s: young and old there: %v, want %v", index, tenant, got, want)
				}
			}
		}
	})
}
