package storagetest

import (
	"errors"
	"math"
	"slices"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
)

// dimension of the embeddings that the store under test is made for.
const dimension = 4

func testRanges(d *documents) {
	d.put(
		d.memory("a", 1, "step_index", 1, "ttl_at", "2026-11-20T10:00:00Z"),
		d.memory("b", 2, "step_index", 10, "ttl_at", "2026-11-20T10:00:00.500Z"),
		d.memory("c", 3, "step_index", 9, "ttl_at", "2026-11-20T12:00:00+01:00"),
		d.memory("d", 4),
	)
	for _, c := range []struct {
		ranges map[string]storage.Range
		want   []string
	}{
		{map[string]storage.Range{"step_index": {GTE: "9"}}, []string{"b", "c"}},
		{map[string]storage.Range{"step_index": {GT: "9"}}, []string{"b"}},
		{map[string]storage.Range{"step_index": {GT: "1", LT: "10"}}, []string{"c"}},
		{map[string]storage.Range{"step_index": {LTE: "1"}}, []string{"a"}},
		{map[string]storage.Range{"key": {GTE: "k:b", LT: "k:d"}}, []string{"b", "c"}},
		{map[string]storage.Range{"key": {GT: "K"}, "step_index": {LT: "10"}}, []string{"a", "c"}},
		// Times are instants, however they are written.
		{map[string]storage.Range{"ttl_at": {LT: "2026-11-20T10:00:00.500Z"}}, []string{"a"}},
		{map[string]storage.Range{"ttl_at": {LTE: "2026-11-20T11:00:00.500+01:00"}}, []string{"a", "b"}},
		{map[string]storage.Range{"ttl_at": {GTE: "2026-11-20T11:00:00Z"}}, []string{"c"}},
		{map[string]storage.Range{"nothing": {GT: "1"}}, nil},
		{map[string]storage.Range{"text": {GT: "a"}}, nil},
	} {
		d.finds(storage.Query{Ranges: c.ranges}, c.want...)
	}
	d.finds(storage.Query{Terms: map[string][]string{"ttl_at": {"2026-11-20T11:00:00Z"}}}, "c")
	d.finds(storage.Query{Sort: "-ttl_at"}, "c", "b", "a", "d")
	d.finds(storage.Query{Text: "nothing", Ranges: map[string]storage.Range{"step_index": {GT: "9"}}}, "b")
	d.refuses(map[string]storage.Query{
		"no bound":  {Ranges: map[string]storage.Range{"step_index": {}}},
		"no date":   {Ranges: map[string]storage.Range{"ttl_at": {LT: "yesterday"}}},
		"no number": {Ranges: map[string]storage.Range{"step_index": {LT: "many"}}},
		"no member": {Ranges: map[string]storage.Range{"a.b": {LT: "1"}}},
	})
}

// vector points from one axis towards another.
func vector(angle float64) []float32 {
	return []float32{float32(math.Cos(angle)), float32(math.Sin(angle)), 0, 0}
}

func testVector(d *documents) {
	d.put(
		d.memory("far", 1, "embedding", vector(2), "session_id", "s1"),
		d.memory("near", 2, "embedding", vector(0.1), "session_id", "s2"),
		d.memory("middle", 3, "embedding", vector(1), "session_id", "s1", "ttl_at", "2026-11-20T10:00:00Z"),
		d.memory("none", 4, "session_id", "s1"),
	)
	other := d.other()
	other.put(other.memory("theirs", 1, "embedding", vector(0)))
	ask := storage.Query{Vector: &storage.Vector{Member: "embedding", Values: vector(0)}}
	d.finds(ask, "near", "middle", "far")
	nearest := ask
	nearest.Limit = 1
	d.finds(nearest, "near")
	// Filters come before neighbours are counted.
	nearest.Terms = map[string][]string{"session_id": {"s1"}}
	d.finds(nearest, "middle")
	nearest.Now = "2026-11-20T10:00:01Z"
	d.finds(nearest, "far")
	nearest.Ranges = map[string]storage.Range{"key": {LT: "k:f"}}
	d.finds(nearest)

	page, err := d.Search(d.Context(), d.tenant, storage.IndexMemory, ask)
	if err != nil {
		d.Fatal(err)
	}
	for i, angle := range []float64{0.1, 1, 2} {
		if got := page.Documents[i].Score; math.Abs(got-math.Cos(angle)) > 1e-4 {
			d.Fatalf("score of %s is %v, want %v", page.Documents[i].ID, got, math.Cos(angle))
		}
	}
	d.put(d.memory("near", 5, "embedding", vector(3)))
	d.finds(ask, "middle", "far", "near")
	d.put(d.memory("near", 6))
	if err := d.Delete(d.Context(), d.tenant, storage.IndexMemory, "far"); err != nil {
		d.Fatal(err)
	}
	d.finds(ask, "middle")
	d.refuses(map[string]storage.Query{
		"with text":   {Text: "word", Vector: ask.Vector},
		"with order":  {Sort: "key", Vector: ask.Vector},
		"of a text":   {Vector: &storage.Vector{Member: "text", Values: vector(0)}},
		"of nothing":  {Vector: &storage.Vector{Member: "embedding", Values: make([]float32, dimension)}},
		"of too many": {Vector: &storage.Vector{Member: "embedding", Values: make([]float32, dimension+1)}},
	})
	for name, values := range map[string][]float32{"another dimension": {1, 2, 3}, "all zero": {0, 0, 0, 0}} {
		err := d.Put(d.Context(), d.tenant, storage.IndexMemory, d.memory("x", 1, "embedding", values))
		var schema *storage.SchemaError
		if !errors.As(err, &schema) || schema.Pointer != "/embedding" {
			d.Fatalf("%s: %v", name, err)
		}
	}
}

// testVectorOfMany: the tenant's share of an index, however small, is searched.
func testVectorOfMany(d *documents) {
	const n = 600
	var mine, theirs []storage.Document
	other := d.other()
	for i := range n {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		theirs = append(theirs, other.memory(id, int64(i), "embedding", vector(float64(i)/n/100)))
		if i%60 == 0 {
			mine = append(mine, d.memory(id, int64(i), "embedding", vector(1+float64(i)/n), "session_id", []string{"s0", "s1"}[i/60%2]))
		}
	}
	for o, docs := range map[*documents][]storage.Document{d: mine, other: theirs} {
		o.create(docs...)
	}
	var want []string
	for i, doc := range mine {
		if i%2 == 1 {
			want = append(want, doc.ID)
		}
	}
	d.finds(storage.Query{
		Vector: &storage.Vector{Member: "embedding", Values: vector(0)}, Terms: map[string][]string{"session_id": {"s1"}}, Limit: 5,
	}, want...)
}

// call is the event of a skill call, with a response of so many bytes.
func (d *documents) call(id string, position int64, skill, ts string, size int) storage.Document {
	return d.document(id, position, map[string]any{
		"event_id": id, "tenant_id": d.tenant, "skill_id": skill, "status": "done", "ts": ts, "response_size_bytes": size,
	})
}

func testAggregate(d *documents) {
	docs := []storage.Document{
		d.call("a", 1, "outlets", "2026-11-20T10:00:00Z", 100),
		d.call("b", 2, "outlets", "2026-11-20T23:59:59.999Z", 300),
		d.call("c", 3, "menus", "2026-11-22T00:30:00+01:00", 50), // the 21st
		d.document("d", 4, map[string]any{"event_id": "d", "tenant_id": d.tenant, "skill_id": "menus", "status": "failed", "ts": "2026-11-23T00:00:00Z"}),
	}
	if _, err := d.Create(d.Context(), d.tenant, storage.IndexSkillCalls, docs...); err != nil {
		d.Fatal(err)
	}
	other := d.other()
	if _, err := d.Create(d.Context(), other.tenant, storage.IndexSkillCalls, other.call("a", 1, "outlets", "2026-11-20T10:00:00Z", 7)); err != nil {
		d.Fatal(err)
	}
	d.refresh()
	size := func(by string) storage.Aggregation {
		return storage.Aggregation{By: by, ValueMember: "response_size_bytes"}
	}
	bucket := func(key string, count int64, sizes ...float64) storage.Bucket {
		b := storage.Bucket{Key: key, Count: count, Values: int64(len(sizes))}
		if len(sizes) > 0 {
			for _, s := range sizes {
				b.Sum += s
			}
			b.Min, b.Max, b.Avg = slices.Min(sizes), slices.Max(sizes), b.Sum/float64(len(sizes))
		}
		return b
	}
	for _, c := range []struct {
		q    storage.Query
		a    storage.Aggregation
		want []storage.Bucket
	}{
		{storage.Query{}, storage.Aggregation{}, []storage.Bucket{bucket("", 4)}},
		{storage.Query{}, size(""), []storage.Bucket{bucket("", 4, 100, 300, 50)}},
		{storage.Query{}, size("skill_id"), []storage.Bucket{bucket("menus", 2, 50), bucket("outlets", 2, 100, 300)}},
		{storage.Query{}, storage.Aggregation{By: "response_size_bytes"}, []storage.Bucket{bucket("50", 1), bucket("100", 1), bucket("300", 1)}},
		{
			storage.Query{Terms: map[string][]string{"skill_id": {"outlets"}}, Ranges: map[string]storage.Range{"ts": {GT: "2026-11-20T10:00:00Z"}}},
			size("status"),
			[]storage.Bucket{bucket("done", 1, 300)},
		},
		{storage.Query{Terms: map[string][]string{"skill_id": {"none"}}}, size(""), nil},
		{storage.Query{Terms: map[string][]string{"nothing": {"x"}}}, size(""), nil},
	} {
		got, err := d.Aggregate(d.Context(), d.tenant, storage.IndexSkillCalls, c.q, c.a)
		if err != nil {
			d.Fatalf("%+v of %+v: %v", c.a, c.q, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			d.Fatalf("%+v of %+v (-want +got):\n%s", c.a, c.q, diff)
		}
	}
	for name, a := range map[string]storage.Aggregation{
		"member": {By: "nothing"},
		"number": {ValueMember: "skill_id"},
	} {
		if _, err := d.Aggregate(d.Context(), d.tenant, storage.IndexSkillCalls, storage.Query{}, a); err == nil {
			d.Fatalf("%s: no error", name)
		}
	}
}

func testPurge(d *documents) {
	var docs []storage.Document
	const n = 1200
	for i := range n {
		ttl := "2026-11-20T10:00:00Z"
		if i >= n-3 {
			ttl = "2026-11-21T10:00:00Z"
		}
		docs = append(docs, d.memory(string(rune('a'+i%26))+string(rune('a'+i/26)), int64(i), "text", "word", "ttl_at", ttl))
	}
	d.create(docs...)
	other := d.other()
	other.put(other.memory("theirs", 1, "ttl_at", "2026-11-20T10:00:00Z"))
	d.refresh()
	expired := storage.Query{Ranges: map[string]storage.Range{"ttl_at": {LT: "2026-11-21T00:00:00Z"}}}
	purged, err := d.Purge(d.Context(), d.tenant, storage.IndexMemory, expired)
	if err != nil || purged != n-3 {
		d.Fatalf("purged %d, %v", purged, err)
	}
	d.missing(docs[0].ID)
	d.finds(storage.Query{Text: "word", Sort: ""}, docs[n-3].ID, docs[n-2].ID, docs[n-1].ID)
	other.finds(storage.Query{}, "theirs")
	if purged, err := d.Purge(d.Context(), d.tenant, storage.IndexMemory, expired); err != nil || purged != 0 {
		d.Fatalf("purged %d again, %v", purged, err)
	}
	left := map[string][]string{"id": {docs[n-3].ID, docs[n-2].ID, docs[n-1].ID}}
	d.finds(storage.Query{Terms: left, Before: n - 2}, docs[n-3].ID)
	if purged, err := d.Purge(d.Context(), d.tenant, storage.IndexMemory, storage.Query{Before: n - 2}); err != nil || purged != 1 {
		d.Fatalf("purged %d before a position, %v", purged, err)
	}
	d.refresh()
	d.finds(storage.Query{}, docs[n-2].ID, docs[n-1].ID)
	for _, q := range []storage.Query{{Before: 1, Text: "word"}, {Before: 1, Vector: &storage.Vector{Member: "embedding", Values: []float32{1}}}} {
		if _, err := d.Search(d.Context(), d.tenant, storage.IndexMemory, q); err == nil {
			d.Fatal("a position bounds a text or a vector")
		}
	}
}
