package storage_test

import (
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/storage"
)

// TestAgedByTime: the member that an age is counted from is a time of its index.
func TestAgedByTime(t *testing.T) {
	for index, member := range storage.Aged {
		fields, err := storage.Fields(index)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range fields {
			found = found || f.Name == member && f.Kind == storage.Date
		}
		if !found {
			t.Errorf("%s has no time %s", index, member)
		}
	}
}

func TestOlder(t *testing.T) {
	before := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		index, body string
		before      time.Time
		want        bool
	}{
		{storage.IndexEvents, `{"ts":"2026-11-20T09:59:59.999Z"}`, before, true},
		{storage.IndexEvents, `{"ts":"2026-11-20T11:59:59+02:00"}`, before, true},
		{storage.IndexEvents, `{"ts":"2026-11-20T10:00:00Z"}`, before, false},
		{storage.IndexEvents, `{"ts":"2026-11-20T09:59:59.999Z"}`, time.Time{}, false},
		{storage.IndexPlans, `{"completed_at":null,"created_at":"2020-01-01T00:00:00Z"}`, before, false},
		{storage.IndexPlans, `{"created_at":"2020-01-01T00:00:00Z"}`, before, false},
		{storage.IndexPlans, `{"completed_at":"2020-01-01T00:00:00Z"}`, before, true},
		{storage.IndexPlans, `{"completed_at":"yesterday"}`, before, false},
		{storage.IndexPlans, `[]`, before, false},
		{storage.IndexSouls, `{"updated_at":"2020-01-01T00:00:00Z"}`, before, false},
	} {
		if got := storage.Older(c.index, json.RawMessage(c.body), c.before); got != c.want {
			t.Errorf("%s %s: %v", c.index, c.body, got)
		}
	}
}
