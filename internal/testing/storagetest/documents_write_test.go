package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"aob.dev/writ/storage"
)

func testPutAndGet(d *documents) {
	doc := d.memory("a", 7, "step_index", 3, "text", "ä\u0000\"\n")
	d.put(doc)
	d.holds(doc)
	d.missing("b")
}

func testPutFence(d *documents) {
	first, same := d.memory("a", 5, "text", "first"), d.memory("a", 5, "text", "same position")
	d.put(first, same)
	d.holds(first)
	for _, late := range []int64{4, 0} {
		if err := d.Put(d.Context(), d.tenant, storage.IndexMemory, d.memory("a", late)); !errors.Is(err, storage.ErrStale) {
			d.Fatalf("put at %d over 5: %v", late, err)
		}
	}
	d.holds(first)
	later := d.memory("a", 6, "text", "later")
	d.put(later)
	d.holds(later)
}

func testSwapFence(d *documents) {
	swap := func(expected int64, doc storage.Document) error {
		return d.Swap(d.Context(), d.tenant, storage.IndexMemory, expected, doc)
	}
	if err := swap(3, d.memory("a", 4)); !errors.Is(err, storage.ErrStale) {
		d.Fatalf("swap of a missing document: %v", err)
	}
	first := d.memory("a", 4, "text", "first")
	if err := swap(storage.NoPosition, first); err != nil {
		d.Fatal(err)
	}
	for name, err := range map[string]error{
		"it exists":              swap(storage.NoPosition, d.memory("a", 9)),
		"an older version":       swap(3, d.memory("a", 9)),
		"a version to come":      swap(5, d.memory("a", 9)),
		"it lowers the position": swap(4, d.memory("a", 3)),
	} {
		if !errors.Is(err, storage.ErrStale) {
			d.Fatalf("%s: %v", name, err)
		}
	}
	d.holds(first)
	second := d.memory("a", 6, "text", "second")
	if err := swap(4, second); err != nil {
		d.Fatal(err)
	}
	d.holds(second)
}

// testSwapMany lets many writers count up one document: none is lost.
func testSwapMany(d *documents) {
	d.put(d.memory("n", 0, "step_index", 0))
	together(func(int) {
		for {
			doc, err := d.Get(d.Context(), d.tenant, storage.IndexMemory, "n")
			if err != nil {
				d.Error(err)
				return
			}
			var m struct {
				N int `json:"step_index"`
			}
			if err := json.Unmarshal(doc.Body, &m); err != nil {
				d.Error(err)
				return
			}
			err = d.Swap(d.Context(), d.tenant, storage.IndexMemory, doc.Position, d.memory("n", doc.Position+1, "step_index", m.N+1))
			if err == nil {
				return
			}
			if !errors.Is(err, storage.ErrStale) {
				d.Error(err)
				return
			}
		}
	})
	d.holds(d.memory("n", callers, "step_index", callers))
}

func testCreate(d *documents) {
	a, b := d.memory("a", 1, "text", "a"), d.memory("b", 1)
	if n := d.create(); n != 0 {
		d.Fatalf("created %d of nothing", n)
	}
	if n := d.create(a); n != 1 {
		d.Fatalf("created %d", n)
	}
	if n := d.create(d.memory("a", 9), b, d.memory("b", 9)); n != 1 {
		d.Fatalf("created %d of one new document", n)
	}
	d.holds(a)
	d.holds(b)
}

func testCreateMany(d *documents) {
	var created atomic.Int64
	together(func(i int) {
		n, err := d.Create(d.Context(), d.tenant, storage.IndexMemory, d.memory("same", int64(i)), d.memory(fmt.Sprint(i), int64(i)))
		if err != nil {
			d.Error(err)
		}
		created.Add(int64(n))
	})
	if n := created.Load(); n != callers+1 {
		d.Fatalf("created %d, want %d", n, callers+1)
	}
}

func testProject(d *documents) {
	project := func(put, created []storage.Document) {
		d.Helper()
		if err := d.Project(d.Context(), d.tenant, storage.IndexMemory, storage.Projection{Put: put, Created: created}); err != nil {
			d.Fatal(err)
		}
	}
	project(nil, nil)
	stored := []storage.Document{d.memory("low", 4), d.memory("same", 5), d.memory("high", 6), d.memory("made", 5)}
	d.put(stored...)
	again := []storage.Document{
		d.memory("low", 5, "text", "newer"), d.memory("same", 5, "text", "other"), d.memory("high", 5, "text", "stale"), d.memory("new", 5),
	}
	created := []storage.Document{d.memory("made", 9, "text", "too late"), d.memory("making", 9)}
	for range 2 { // going over it again changes nothing
		project(again, created)
		for _, want := range []storage.Document{again[0], stored[1], stored[2], again[3], stored[3], created[1]} {
			d.holds(want)
		}
	}
	err := d.Project(d.Context(), d.tenant, storage.IndexEvents, storage.Projection{Put: []storage.Document{d.memory("event", 1)}})
	if err == nil {
		d.Fatal("a document of an index that only grows was put")
	}
}

// testProjectMany lets many go over the same documents, each to its own position.
func testProjectMany(d *documents) {
	const size = 40
	together(func(i int) {
		var p storage.Projection
		for n := range size {
			p.Put = append(p.Put, d.memory(fmt.Sprint("put", n), int64(i), "step_index", i))
			p.Created = append(p.Created, d.memory(fmt.Sprint("created", n), 7))
		}
		if err := d.Project(d.Context(), d.tenant, storage.IndexMemory, p); err != nil {
			d.Error(err)
		}
	})
	for n := range size {
		d.holds(d.memory(fmt.Sprint("put", n), callers-1, "step_index", callers-1))
		d.holds(d.memory(fmt.Sprint("created", n), 7))
	}
}

func testDelete(d *documents) {
	d.put(d.memory("a", 1, "text", "word"), d.memory("b", 1, "text", "word"))
	for range 2 {
		if err := d.Delete(d.Context(), d.tenant, storage.IndexMemory, "a"); err != nil {
			d.Fatal(err)
		}
	}
	d.missing("a")
	d.finds(storage.Query{}, "b")
	d.finds(storage.Query{Text: "word"}, "b")
	d.finds(storage.Query{Terms: map[string][]string{"scope": {"session"}}}, "b")
}

func testSchemaError(d *documents) {
	kept := d.memory("kept", 1)
	d.put(kept)
	bad := map[string]storage.Document{
		"/surprise":  d.memory("kept", 2, "surprise", true),
		"/scope":     d.memory("kept", 2, "scope", "galaxy"),
		"/tenant_id": d.memory("kept", 2, "tenant_id", "other"),
	}
	for pointer, doc := range bad {
		for name, err := range map[string]error{
			"put":  d.Put(d.Context(), d.tenant, storage.IndexMemory, doc),
			"swap": d.Swap(d.Context(), d.tenant, storage.IndexMemory, 1, doc),
			"create": func() error {
				_, err := d.Create(d.Context(), d.tenant, storage.IndexMemory, d.memory("new", 2), doc)
				return err
			}(),
			"project": d.Project(d.Context(), d.tenant, storage.IndexMemory, storage.Projection{
				Put: []storage.Document{d.memory("new", 2), doc}, Created: []storage.Document{d.memory("newer", 2)},
			}),
			"project, created": d.Project(d.Context(), d.tenant, storage.IndexMemory, storage.Projection{
				Put: []storage.Document{d.memory("new", 2)}, Created: []storage.Document{d.memory("newer", 2), doc},
			}),
		} {
			var schema *storage.SchemaError
			if !errors.As(err, &schema) {
				d.Fatalf("%s of a document with a bad %s: %v", name, pointer, err)
			}
			if schema.Index != storage.IndexMemory || schema.Pointer != pointer || schema.Reason == "" {
				d.Fatalf("%s of a document with a bad %s: %+v", name, pointer, schema)
			}
		}
	}
	d.holds(kept)
	d.finds(storage.Query{}, "kept") // nothing of a refused Create or Project
	for _, body := range []string{"", "null", "[]", "{", `{"id":1}{}`} {
		err := d.Put(d.Context(), d.tenant, storage.IndexMemory, storage.Document{ID: "x", Body: json.RawMessage(body)})
		var schema *storage.SchemaError
		if !errors.As(err, &schema) {
			d.Fatalf("body %q: %v", body, err)
		}
	}
}

func testOtherTenant(d *documents) {
	mine := d.memory("a", 5, "text", "word")
	d.put(mine)
	for _, tenant := range []string{d.tenant + "x", d.tenant[:2], "*", "%", ""} {
		other := documents{T: d.T, Documents: d.Documents, tenant: tenant}
		if _, err := d.Get(d.Context(), tenant, storage.IndexMemory, "a"); tenant != "" && !errors.Is(err, storage.ErrNotFound) {
			d.Fatalf("get as %q: %v", tenant, err)
		}
		if err := d.Delete(d.Context(), tenant, storage.IndexMemory, "a"); tenant != "" && err != nil {
			d.Fatalf("delete as %q: %v", tenant, err)
		}
		for _, q := range []storage.Query{{}, {Text: "word"}, {Sort: "key"}, {Terms: map[string][]string{"tenant_id": {d.tenant}}}} {
			page, err := d.Search(d.Context(), tenant, storage.IndexMemory, q)
			if len(page.Documents) > 0 {
				d.Fatalf("search %+v as %q found %d, %v", q, tenant, len(page.Documents), err)
			}
		}
		if tenant == d.tenant+"x" {
			theirs := other.memory("a", 1, "text", "word")
			other.put(theirs) // the same id is another document
			other.holds(theirs)
			other.finds(storage.Query{Text: "word"}, "a")
		}
	}
	d.holds(mine)
	d.finds(storage.Query{Text: "word"}, "a")
}

func testOtherIndex(d *documents) {
	d.put(d.memory("a", 1))
	if _, err := d.Get(d.Context(), d.tenant, storage.IndexPlans, "a"); !errors.Is(err, storage.ErrNotFound) {
		d.Fatalf("get from another index: %v", err)
	}
	page, err := d.Search(d.Context(), d.tenant, storage.IndexPlans, storage.Query{})
	if err != nil || len(page.Documents) > 0 {
		d.Fatalf("search of another index: %d, %v", len(page.Documents), err)
	}
	var schema *storage.SchemaError
	if err := d.Put(d.Context(), d.tenant, "agent_rumours", d.memory("a", 1)); !errors.As(err, &schema) {
		d.Fatalf("put into an unknown index: %v", err)
	}
}

func testCancelledDocument(d *documents) {
	ctx, cancel := context.WithCancel(d.Context())
	cancel()
	if err := d.Put(ctx, d.tenant, storage.IndexMemory, d.memory("a", 1)); !errors.Is(err, context.Canceled) {
		d.Fatalf("put: %v", err)
	}
	if _, err := d.Get(ctx, d.tenant, storage.IndexMemory, "a"); !errors.Is(err, context.Canceled) {
		d.Fatalf("get: %v", err)
	}
	if _, err := d.Search(ctx, d.tenant, storage.IndexMemory, storage.Query{}); !errors.Is(err, context.Canceled) {
		d.Fatalf("search: %v", err)
	}
}
