//go:build integration

package opensearch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// vectored is a memory with an embedding of so many numbers.
func vectored(id string, position int64, dimension int) storage.Document {
	doc := memory(id, position)
	vector := strings.TrimSuffix(strings.Repeat("1,", dimension), ",")
	doc.Body = []byte(strings.TrimSuffix(string(doc.Body), "}") + `,"embedding":[` + vector + `]}`)
	return doc
}

// homes are the indices of a name, and the one behind the alias.
func homes(t *testing.T, name string) (all []string, behind string) {
	t.Helper()
	var found map[string]struct{ Aliases map[string]any }
	if err := json.Unmarshal(api(t, http.MethodGet, "/"+name+"-*/_alias", ""), &found); err != nil {
		t.Fatal(err)
	}
	for home := range found {
		all = append(all, home)
		if _, in := found[home].Aliases[name]; in {
			behind = home
		}
	}
	slices.Sort(all)
	return all, behind
}

// TestIntegrationReindex: an index gets what cannot be changed in place, and retains
// its documents with their positions; vectors of the old dimension are dropped.
func TestIntegrationReindex(t *testing.T) {
	const name = "renew-" + storage.IndexMemory
	old := open(t, "renew-")
	for i := range int64(300) {
		if err := old.Put(t.Context(), "acme", storage.IndexMemory, vectored(fmt.Sprint(i), i, dimension)); err != nil {
			t.Fatal(err)
		}
	}
	c := config("renew-")
	c.Dimension++
	c.Check = storage.NewCheck(c.Dimension)
	d, err := opensearch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "reindex --search "+storage.IndexMemory) {
		t.Fatalf("migrate: %v", err)
	}
	n, err := d.Reindex(t.Context(), storage.IndexMemory)
	if err != nil || n != 300 {
		t.Fatalf("%d documents: %v", n, err)
	}
	if all, behind := homes(t, name); len(all) != 1 || behind != name+"-000002" {
		t.Errorf("%v, %s is in force", all, behind)
	}
	if _, err := d.Reindex(t.Context(), storage.IndexChunks); err != nil {
		t.Fatal(err)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Errorf("migrate: %v", err)
	}
	got, err := d.Get(t.Context(), "acme", storage.IndexMemory, "17")
	if err != nil || got.Position != 17 || strings.Contains(string(got.Body), "embedding") || !strings.Contains(string(got.Body), `"a note"`) {
		t.Errorf("%+v %v", got, err)
	}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, vectored("17", 16, c.Dimension)); !errors.Is(err, storage.ErrStale) {
		t.Errorf("a late write: %v", err)
	}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, vectored("17", 18, c.Dimension)); err != nil {
		t.Error(err)
	}
	if _, err := d.Reindex(t.Context(), storage.IndexEvents); !errors.Is(err, opensearch.ErrCutByMonths) {
		t.Errorf("an index of months: %v", err)
	}
}

// TestIntegrationReindexBesideWriters: what was acknowledged while an index is
// copied is there afterwards; what could not be written says that it may be again.
func TestIntegrationReindexBesideWriters(t *testing.T) {
	d, other := open(t, "beside-"), open(t, "beside-")
	var running, begun sync.WaitGroup
	done := make(chan struct{})
	written := make([]int64, 4)
	for w := range written {
		begun.Add(1)
		first := sync.OnceFunc(begun.Done)
		running.Go(func() {
			defer first()
			for n := int64(1); ; n++ {
				select {
				case <-done:
					return
				default:
				}
				_, err := other.Create(t.Context(), "acme", storage.IndexMemory, memory(fmt.Sprintf("%d-%d", w, n), 1))
				switch {
				case err == nil:
					written[w] = n
					first()
				case errors.Is(err, storage.ErrUnavailable):
					n-- // the same again
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	begun.Wait()
	for range 3 {
		if _, err := d.Reindex(t.Context(), storage.IndexMemory); err != nil {
			t.Error(err)
		}
	}
	close(done)
	running.Wait()
	for w, last := range written {
		for n := int64(1); n <= last; n++ {
			if _, err := d.Get(t.Context(), "acme", storage.IndexMemory, fmt.Sprintf("%d-%d", w, n)); err != nil {
				t.Errorf("writer %d, document %d of %d: %v", w, n, last, err)
			}
		}
	}
}

// TestIntegrationReindexCutOff: the remains of a crash are reported, and the next run completes
// it; a failure is undone.
func TestIntegrationReindexCutOff(t *testing.T) {
	const name = "cut-" + storage.IndexMemory
	d := open(t, "cut-")
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 1)); err != nil {
		t.Fatal(err)
	}
	// A crash while the server copied.
	api(t, http.MethodPut, "/"+name+"-000002", "")
	api(t, http.MethodPut, "/"+name+"-000001/_block/write", "")
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 2)); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a write meanwhile: %v", err)
	}
	if _, err := d.Create(t.Context(), "acme", storage.IndexMemory, memory("b", 2)); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a creation meanwhile: %v", err)
	}
	if err := d.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "reindex --search "+storage.IndexMemory) {
		t.Errorf("migrate: %v", err)
	}
	if n, err := d.Reindex(t.Context(), storage.IndexMemory); err != nil || n != 1 {
		t.Fatalf("%d documents: %v", n, err)
	}
	if all, behind := homes(t, name); len(all) != 1 || behind != name+"-000003" {
		t.Errorf("%v, %s is in force", all, behind)
	}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 2)); err != nil {
		t.Error(err)
	}

	// A document that the new mapping does not take.
	api(t, http.MethodPut, "/"+name+"-000003/_mapping", `{"properties":{"surprise":{"type":"keyword"}}}`)
	api(t, http.MethodPut, "/"+name+"-000003/_doc/x", `{"surprise":"x"}`)
	if _, err := d.Reindex(t.Context(), storage.IndexMemory); err == nil || !strings.Contains(err.Error(), "1 documents") {
		t.Errorf("%v", err)
	}
	if all, behind := homes(t, name); len(all) != 1 || behind != name+"-000003" {
		t.Errorf("%v, %s is in force", all, behind)
	}
	if err := d.Put(t.Context(), "acme", storage.IndexMemory, memory("a", 3)); err != nil {
		t.Error(err)
	}
}

// TestIntegrationMissing looks, and makes nothing.
func TestIntegrationMissing(t *testing.T) {
	d, err := opensearch.Open(config("nowhere-"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	missing, err := d.Missing(t.Context())
	if err != nil || len(missing) != len(storage.Indices)-len(storage.Appended) {
		t.Errorf("%v %v", missing, err)
	}
	if got := string(api(t, http.MethodGet, "/_cat/indices/nowhere-*", "")); got != "" {
		t.Errorf("made %s", got)
	}
}
