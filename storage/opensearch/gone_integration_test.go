//go:build integration

package opensearch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/storage"
)

// TestIntegrationIndexMissing: a call that finds no index reports that it may work later,
// never that it is done, and it does once the index exists.
func TestIntegrationIndexMissing(t *testing.T) {
	d := open(t, "gone-")
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(api(t, http.MethodDelete, "/gone-agent_memory-000001", ""), new(any)); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"put": func() error { return d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 2)) },
		"create": func() error {
			_, err := d.Create(t.Context(), "acme", storage.IndexMemory, memory("b", 2))
			return err
		},
		"project": func() error {
			p := storage.Projection{Put: []storage.Document{memory("c", 2)}}
			return d.Project(t.Context(), "acme", storage.IndexMemory, p)
		},
		"search": func() error {
			_, err := d.Search(t.Context(), "acme", storage.IndexMemory, storage.Query{})
			return err
		},
		"get": func() error {
			_, err := d.Get(t.Context(), "acme", storage.IndexMemory, "b")
			return err
		},
		"purge": func() error {
			_, err := d.Purge(t.Context(), "acme", storage.IndexMemory, storage.Query{})
			return err
		},
		"delete": func() error { return d.Delete(t.Context(), "acme", storage.IndexMemory, "b") },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("%s without an index: %v", name, err)
		}
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"put", "create", "project", "search", "get", "purge", "delete"} {
		if err := calls[name](); err != nil {
			t.Errorf("%s with the index: %v", name, err)
		}
	}
}

// TestIntegrationMonthMissing: a month that another process removed is created again
// when the write that did not find it is repeated.
func TestIntegrationMonthMissing(t *testing.T) {
	d, other := open(t, "month-"), open(t, "month-")
	api(t, http.MethodPut, "/_cluster/settings", `{"persistent":{"action.auto_create_index":"false"}}`)
	defer api(t, http.MethodPut, "/_cluster/settings", `{"persistent":{"action.auto_create_index":null}}`)
	if _, err := d.Create(t.Context(), "acme", storage.IndexEvents, event("a", "2026-11-01T00:00:00Z")); err != nil {
		t.Fatal(err)
	}
	if dropped, err := other.DropBefore(t.Context(), storage.IndexEvents, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil || len(dropped) != 1 {
		t.Fatalf("dropped %v: %v", dropped, err)
	}
	if _, err := d.Create(t.Context(), "acme", storage.IndexEvents, event("b", "2026-11-02T00:00:00Z")); !errors.Is(err, storage.ErrUnavailable) {
		t.Fatalf("without the month: %v", err)
	}
	if n, err := d.Create(t.Context(), "acme", storage.IndexEvents, event("b", "2026-11-02T00:00:00Z")); err != nil || n != 1 {
		t.Fatalf("created %d: %v", n, err)
	}
	if _, err := d.Get(t.Context(), "acme", storage.IndexEvents, "b"); err != nil {
		t.Error(err)
	}
}

// TestIntegrationReindexBesideAll: while an index is replaced repeatedly,
// reads are whole or report that they may be later, and what is reported as removed is.
func TestIntegrationReindexBesideAll(t *testing.T) {
	const kept = 20
	d, other := open(t, "all-"), open(t, "all-")
	for i := range kept {
		if _, err := d.Create(t.Context(), "acme", storage.IndexMemory, memory(fmt.Sprintf("k%d", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := time.Now().UnixMicro() // positions only grow, also from run to run
	calls := map[string]func(n int64) error{
		"get": func(int64) error {
			_, err := other.Get(t.Context(), "acme", storage.IndexMemory, "k1")
			return err
		},
		"search": func(int64) error {
			page, err := other.Search(t.Context(), "acme", storage.IndexMemory, storage.Query{Limit: kept})
			if err == nil && len(page.Documents) < kept {
				return fmt.Errorf("%d of %d documents", len(page.Documents), kept)
			}
			return err
		},
		"aggregate": func(int64) error {
			buckets, err := other.Aggregate(t.Context(), "acme", storage.IndexMemory, storage.Query{}, storage.Aggregation{})
			if err == nil && (len(buckets) != 1 || buckets[0].Count < kept) {
				return fmt.Errorf("%+v of %d documents", buckets, kept)
			}
			return err
		},
		"delete": func(n int64) error {
			id := fmt.Sprintf("d%d", n)
			if _, err := other.Create(t.Context(), "acme", storage.IndexMemory, memory(id, 1)); err != nil {
				return err
			}
			if err := other.Delete(t.Context(), "acme", storage.IndexMemory, id); err != nil {
				return err
			}
			_, err := other.Get(t.Context(), "acme", storage.IndexMemory, id)
			if errors.Is(err, storage.ErrNotFound) {
				return nil
			}
			return errors.Join(fmt.Errorf("%s is still there", id), err)
		},
		"put": func(n int64) error {
			return other.Put(t.Context(), "acme", storage.IndexMemory, memory("p", first+n))
		},
		"project": func(n int64) error {
			p := storage.Projection{Put: []storage.Document{memory("x", first+n), memory("y", first+n)}}
			return other.Project(t.Context(), "acme", storage.IndexMemory, p)
		},
		"purge": func(int64) error {
			_, err := other.Purge(t.Context(), "nobody", storage.IndexMemory, storage.Query{})
			return err
		},
	}
	var running sync.WaitGroup
	done := make(chan struct{})
	for name, call := range calls {
		running.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if err := call(n); err != nil && !errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	for range 5 {
		if _, err := d.Reindex(t.Context(), storage.IndexMemory); err != nil {
			t.Error(err)
		}
	}
	close(done)
	running.Wait()
}
