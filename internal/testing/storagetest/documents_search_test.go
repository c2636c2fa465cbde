package storagetest

import (
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/storage"
)

func testTerms(d *documents) {
	d.put(
		d.memory("a", 1, "session_id", "s1", "step_index", 1),
		d.memory("b", 2, "session_id", "s1", "step_index", 2),
		d.memory("c", 3, "session_id", "s2", "step_index", 2),
		d.memory("d", 4),
	)
	for _, c := range []struct {
		terms map[string][]string
		want  []string
	}{
		{nil, []string{"a", "b", "c", "d"}},
		{map[string][]string{"session_id": {"s1"}}, []string{"a", "b"}},
		{map[string][]string{"session_id": {"s1", "s2", "s3"}}, []string{"a", "b", "c"}},
		{map[string][]string{"session_id": {"s1"}, "step_index": {"2"}}, []string{"b"}},
		{map[string][]string{"step_index": {"2"}}, []string{"b", "c"}},
		{map[string][]string{"step_index": {"1", "2"}, "scope": {"session"}}, []string{"a", "b", "c"}},
		{map[string][]string{"session_id": {"s"}}, nil},
		{map[string][]string{"session_id": {"S1"}}, nil},
		{map[string][]string{"session_id": {"s1' OR '1'='1"}}, nil},
		{map[string][]string{"nothing": {"s1"}}, nil},
		{map[string][]string{"session_id": {}}, nil},
	} {
		d.finds(storage.Query{Terms: c.terms}, c.want...)
	}
}

func testEvery(d *documents) {
	d.put(d.memory("a", 1, "skills", []string{"x", "y", "z"}), d.memory("b", 2, "skills", []string{"x", "z"}), d.memory("c", 3, "skills", []string{"y"}), d.memory("d", 4))
	for _, c := range []struct {
		every []string
		want  []string
	}{{[]string{"x"}, []string{"a", "b"}}, {[]string{"x", "z"}, []string{"a", "b"}}, {[]string{"z", "y", "x"}, []string{"a"}}, {[]string{"x", "w"}, nil}, {nil, []string{"a", "b", "c", "d"}}} {
		d.finds(storage.Query{Every: map[string][]string{"skills": c.every}}, c.want...)
	}
	d.finds(storage.Query{Every: map[string][]string{"skills": {"x", "z"}}, Terms: map[string][]string{"skills": {"y", "w"}}}, "a")
}

func testTermsFollowWrites(d *documents) {
	one := storage.Query{Terms: map[string][]string{"session_id": {"s1"}}}
	two := storage.Query{Terms: map[string][]string{"session_id": {"s2"}}}
	d.put(d.memory("a", 1, "session_id", "s1", "text", "old"))
	d.put(d.memory("a", 2, "session_id", "s2", "text", "new"))
	d.finds(one)
	d.finds(two, "a")
	d.finds(storage.Query{Text: "old"})
	d.finds(storage.Query{Text: "new"}, "a")
	d.put(d.memory("a", 3))
	d.finds(two)
	d.finds(storage.Query{Text: "new"})
}

func testSort(d *documents) {
	d.put(
		d.memory("b", 3, "created_at", "2026-11-20T10:00:02Z", "step_index", 9),
		d.memory("c", 1, "created_at", "2026-11-20T10:00:01Z", "step_index", 10),
		d.memory("a", 2, "created_at", "2026-11-20T10:00:03Z", "step_index", 1),
	)
	d.finds(storage.Query{}, "c", "a", "b")
	d.finds(storage.Query{Sort: "_position"}, "c", "a", "b")
	d.finds(storage.Query{Sort: "-_position"}, "b", "a", "c")
	d.finds(storage.Query{Sort: "created_at"}, "c", "b", "a")
	d.finds(storage.Query{Sort: "-created_at"}, "a", "b", "c")
	d.finds(storage.Query{Sort: "step_index"}, "a", "b", "c") // as numbers
	all := map[string][]string{"scope": {"session"}}
	d.finds(storage.Query{Sort: "-step_index", Terms: all}, "c", "b", "a")
	d.finds(storage.Query{Sort: "-_position", Terms: all}, "b", "a", "c")
}

func testSortMissing(d *documents) {
	d.put(d.memory("n2", 5), d.memory("a", 1, "step_index", 2), d.memory("n1", 4), d.memory("b", 2, "step_index", 1))
	all := map[string][]string{"scope": {"session"}}
	for _, terms := range []map[string][]string{nil, all} {
		d.finds(storage.Query{Sort: "step_index", Terms: terms}, "b", "a", "n1", "n2")
		d.finds(storage.Query{Sort: "-step_index", Terms: terms}, "a", "b", "n1", "n2")
		for limit := 1; limit <= 5; limit++ {
			got := d.pages(storage.Query{Sort: "step_index", Terms: terms, Limit: limit})
			if !slices.Equal(got, []string{"b", "a", "n1", "n2"}) {
				d.Fatalf("limit %d: %v", limit, got)
			}
		}
	}
	// Those without the member may share a position: pages lose none of them.
	d.put(d.memory("n3", 5), d.memory("n4", 5))
	for _, terms := range []map[string][]string{nil, all} {
		for _, sort := range []string{"step_index", "-step_index"} {
			got := d.pages(storage.Query{Sort: sort, Terms: terms, Limit: 1})
			slices.Sort(got)
			if !slices.Equal(got, []string{"a", "b", "n1", "n2", "n3", "n4"}) {
				d.Fatalf("%s: %v", sort, got)
			}
		}
	}
}

func testPages(d *documents) {
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("%02d", i)
		// Positions and steps repeat, so that the intent needs more than them.
		d.put(d.memory(id, int64(i/3), "step_index", i/10, "session_id", "s"))
		want = append(want, id)
	}
	session := map[string][]string{"session_id": {"s"}}
	for _, q := range []storage.Query{
		{},
		{Sort: "step_index"},
		{Terms: session},
		{Sort: "step_index", Terms: session},
		{Sort: "key"},
		{Sort: "-step_index"},
		{Sort: "-step_index", Terms: session},
		{Sort: "-_position", Terms: session},
	} {
		for _, q.Limit = range []int{1, 4, 5, 24, 25, 26} {
			got := d.pages(q)
			if q.Sort != "key" {
				slices.Sort(got) // order within equal values is the store's
			}
			if !slices.Equal(got, want) {
				d.Fatalf("%+v: %v", q, got)
			}
		}
	}
	got := d.pages(storage.Query{Sort: "-key", Limit: 7})
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		d.Fatalf("descending: %v", got)
	}
	if ids, cursor := d.search(storage.Query{}); len(ids) != 25 || cursor != "" {
		d.Fatalf("without a limit: %d, %q", len(ids), cursor)
	}
}

// testPagesOfMany is large enough for a store to choose another way.
func testPagesOfMany(d *documents) {
	const n = 2500
	docs := make([]storage.Document, n)
	want := make([]string, n)
	for i := range docs {
		id := fmt.Sprintf("%04d", i)
		docs[i], want[i] = d.memory(id, int64(i), "step_index", i%7, "session_id", fmt.Sprint(i%2)), id
	}
	if created := d.create(docs...); created != n {
		d.Fatalf("created %d", created)
	}
	check := func(q storage.Query, want int) {
		d.Helper()
		q.Limit = 1000
		got := d.pages(q)
		if len(got) != want || len(slices.Compact(slices.Sorted(slices.Values(got)))) != want {
			d.Fatalf("%+v: %d documents, want %d", q, len(got), want)
		}
	}
	all := map[string][]string{"scope": {"session"}}
	check(storage.Query{Terms: all}, n)
	check(storage.Query{Terms: all, Sort: "-step_index"}, n)
	check(storage.Query{Terms: all, Sort: "task_id"}, n) // none has it
	check(storage.Query{Terms: map[string][]string{"scope": {"session"}, "session_id": {"1"}}, Sort: "step_index"}, n/2)
	check(storage.Query{Terms: map[string][]string{"scope": {"session"}, "key": {"k:0007", "k:0009"}}}, 2)
	if got := d.pages(storage.Query{Terms: all, Sort: "key", Limit: 1000}); !slices.Equal(got, want) {
		d.Fatal("out of order")
	}
	if ids, _ := d.search(storage.Query{}); len(ids) != 100 {
		d.Fatalf("default limit: %d", len(ids))
	}
}

func testText(d *documents) {
	d.put(
		d.memory("much", 1, "text", "earthquake earthquake strong"),
		d.memory("little", 2, "text", "one earthquake among many other words that are about something else entirely"),
		d.memory("none", 3, "text", "outlets and orders", "key", "earthquake"),
		d.memory("place", 4, "text", "Zürich, naïve", "session_id", "s1"),
	)
	d.finds(storage.Query{Text: "earthquake"}, "much", "little") // best first; only text members
	d.finds(storage.Query{Text: "EARTHQUAKE strong"}, "much", "little")
	d.finds(storage.Query{Text: "orders nonsense"}, "none") // any word
	d.finds(storage.Query{Text: "zürich"}, "place")
	d.finds(storage.Query{Text: "earth"})
	d.finds(storage.Query{Text: "earthquake zürich", Terms: map[string][]string{"session_id": {"s1"}}}, "place")
	d.finds(storage.Query{Text: "..."})
	d.finds(storage.Query{Text: "earhtquake", Fuzzy: true}, "much", "little") // letters swapped,
	d.finds(storage.Query{Text: "Outltes", Fuzzy: true}, "none")
	d.finds(storage.Query{Text: "zurich erthqake", Fuzzy: true, Terms: map[string][]string{"session_id": {"s1"}}}, "place") // replaced, left out
	for _, text := range []string{"aerthquake", "earthqu", "nad", "earhtquake\"*"} {                                        // the first, too many, in a short word
		d.finds(storage.Query{Text: text, Fuzzy: true}, map[bool][]string{true: {"much", "little"}}[text[0] == 'e' && text[3] == 'h']...)
	}
	d.finds(storage.Query{Text: "earhtquake"})
	d.other().finds(storage.Query{Text: "earhtquake", Fuzzy: true})
}

func testTextPages(d *documents) {
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("%02d", i)
		d.put(d.memory(id, int64(i), "text", "word"+strings.Repeat(" other", i/2)))
		want = append(want, id)
	}
	for _, limit := range []int{1, 5, 12} {
		got := d.pages(storage.Query{Text: "word", Limit: limit})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			d.Fatalf("limit %d: %v", limit, got)
		}
	}
}

// testTextIsNoSyntax: users' input is words, never search syntax.
func testTextIsNoSyntax(d *documents) {
	d.put(d.memory("a", 1, "text", "alpha"), d.memory("b", 2, "text", "beta"))
	for _, text := range []string{
		`alpha"`, `"alpha`, `alpha*`, `alpha AND`, `(alpha`, `alpha) OR (`, `text:alpha`, `-alpha`, `^alpha`, `{alpha}`,
		`NEAR(alpha)`, "alpha\x00", `alpha NOT alpha`, `space : s1 alpha`, strings.Repeat("alpha ", 500),
	} {
		d.finds(storage.Query{Text: text}, "a")
	}
}

func testExpired(d *documents) {
	d.put(
		d.memory("past", 1, "text", "word", "ttl_at", "2026-11-20T09:59:59.999Z"),
		d.memory("now", 2, "text", "word", "ttl_at", "2026-11-20T10:00:00Z"),
		d.memory("future", 3, "text", "word", "ttl_at", "2026-11-20T12:00:00+01:00"),
		d.memory("never", 4, "text", "word"),
	)
	at := "2026-11-20T10:00:00Z"
	d.finds(storage.Query{Now: at}, "now", "future", "never")
	d.finds(storage.Query{Now: at, Sort: "-key"}, "now", "never", "future")
	d.finds(storage.Query{Now: at, Terms: map[string][]string{"scope": {"session"}}}, "now", "future", "never")
	if ids, _ := d.search(storage.Query{Now: at, Text: "word"}); len(ids) != 3 || slices.Contains(ids, "past") {
		d.Fatalf("text: %v", ids)
	}
	d.finds(storage.Query{}, "past", "now", "future", "never")
	// A document that lives on is found again.
	d.put(d.memory("past", 5))
	d.finds(storage.Query{Now: at}, "now", "future", "never", "past")
}

func testBadQueries(d *documents) {
	d.put(d.memory("a", 1))
	d.refuses(map[string]storage.Query{
		"negative limit": {Limit: -1},
		"endless limit":  {Limit: 1001},
		"cursor":         {After: "not a cursor"},
		"other cursor":   {After: "e30x"},
		"time":           {Now: "yesterday"},
		"sort":           {Sort: "a; DROP TABLE documents"},
		"member":         {Terms: map[string][]string{`a" OR 1`: {"x"}}},
	})
}
