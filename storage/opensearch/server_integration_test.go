//go:build integration

package opensearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// TestIntegrationMigrate may be repeated; what cannot be changed in place is reported.
func TestIntegrationMigrate(t *testing.T) {
	d := open(t, "again-")
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := open(t, "again-").Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(t.Context(), "acme", storage.IndexMemory, "a"); err != nil {
		t.Fatal(err)
	}
	other := config("again-")
	other.Dimension = dimension + 1
	o, err := opensearch.Open(other)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := o.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "dimension 5") {
		t.Fatalf("migrate to another dimension: %v", err)
	}
	// Writing creates no index: an alias that is missing is an error.
	if err := json.Unmarshal(api(t, http.MethodDelete, "/again-agent_memory-000001", ""), new(any)); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 1)); err == nil {
		t.Fatal("a write made an index")
	}
	if n, err := d.Create(t.Context(), "acme", storage.IndexMemory, memory("a", 1)); err == nil || n != 0 {
		t.Fatalf("created %d, %v", n, err)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestIntegrationStrict: the index itself refuses what no schema allows.
func TestIntegrationStrict(t *testing.T) {
	open(t, "strict-")
	for _, index := range storage.Indices {
		answer := api(t, http.MethodPut, "/strict-"+index+"-2026.11/_doc/x", `{"tenant_id":"acme","surprise":true}`)
		if !strings.Contains(string(answer), "strict_dynamic_mapping_exception") {
			t.Errorf("%s: %s", index, answer)
		}
	}
}

// TestIntegrationPartialFailure: of a bulk request that the server accepts in part,
// the part that it did not accept is reported.
func TestIntegrationPartialFailure(t *testing.T) {
	c := config("partial-")
	c.Check = func(string, []byte, any) (string, string, bool) { return "", "", true }
	d, err := opensearch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	bad := storage.Document{ID: "b", Body: json.RawMessage(`{"tenant_id":"acme","surprise":"secret"}`)}
	n, err := d.Create(t.Context(), "acme", storage.IndexMemory, memory("a", 1), bad, memory("c", 1))
	var schema *storage.SchemaError
	if n != 2 || !errors.As(err, &schema) || strings.Contains(err.Error(), "secret") {
		t.Fatalf("created %d, %v", n, err)
	}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, bad); !errors.As(err, &schema) {
		t.Fatalf("put: %v", err)
	}
}

// TestIntegrationMonths: events go to the month of their time, are one whatever is
// written when, and go away by the month.
func TestIntegrationMonths(t *testing.T) {
	d := open(t, "months-")
	events := []storage.Document{event("a", "2026-09-30T23:59:59Z"), event("b", "2026-10-01T00:00:00Z"), event("c", "2026-11-30T23:30:00-01:00")}
	for round, want := range []int{3, 0} {
		if n, err := d.Create(t.Context(), "acme", storage.IndexEvents, events...); err != nil || n != want {
			t.Fatalf("round %d: created %d, %v", round, n, err)
		}
	}
	if err := d.Put(t.Context(), "acme", storage.IndexEvents, events[0]); err == nil {
		t.Fatal("an event was changed")
	}
	// Another process finds the months made.
	if n, err := open(t, "months-").Create(t.Context(), "acme", storage.IndexEvents, events...); err != nil || n != 0 {
		t.Fatalf("after a start: created %d, %v", n, err)
	}
	ids := func() (ids []string) {
		t.Helper()
		if err := d.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := d.Search(t.Context(), "acme", storage.IndexEvents, storage.Query{Sort: "-ts"})
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range page.Documents {
			ids = append(ids, doc.ID)
			if _, err := d.Get(t.Context(), "acme", storage.IndexEvents, doc.ID); err != nil {
				t.Fatal(err)
			}
		}
		return ids
	}
	if got := ids(); !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Fatalf("events %v", got)
	}
	dropped, err := d.DropBefore(t.Context(), storage.IndexEvents, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"months-agent_events-2026.09", "months-agent_events-2026.10"}, dropped); diff != "" {
		t.Fatalf("dropped (-want +got):\n%s", diff)
	}
	if got := ids(); !slices.Equal(got, []string{"c"}) {
		t.Fatalf("events %v", got)
	}
	if _, err := d.Get(t.Context(), "acme", storage.IndexEvents, "a"); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("get of a dropped event: %v", err)
	}
	// A month that is dropped can be written again, with its mapping.
	if n, err := d.Create(t.Context(), "acme", storage.IndexEvents, events[0]); err != nil || n != 1 {
		t.Fatalf("created %d, %v", n, err)
	}
	if err := d.Delete(t.Context(), "acme", storage.IndexEvents, "a"); err != nil {
		t.Fatal(err)
	}
	if got := ids(); !slices.Equal(got, []string{"c"}) {
		t.Fatalf("events %v", got)
	}
}

func memory(id string, position int64) storage.Document {
	return storage.Document{ID: id, Position: position, Body: json.RawMessage(fmt.Sprintf(
		`{"id":%q,"tenant_id":"acme","scope":"session","key":"k:%s","text":"a note","created_at":"2026-11-20T10:00:00Z"}`, id, id))}
}

// event is in the month of its time.
func event(id, ts string) storage.Document {
	return storage.Document{ID: id, Body: json.RawMessage(fmt.Sprintf(`{"event_id":%q,"tenant_id":"acme","event_type":"x","ts":%q}`, id, ts))}
}

// api is a request of an administrator's, past the adapter.
func api(t *testing.T, method, path, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
