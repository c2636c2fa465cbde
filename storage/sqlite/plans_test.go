package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/storage"
)

// matches are the words of a text that are looked up, in a step of a plan.
var matches = regexp.MustCompile(`^text VIRTUAL TABLE INDEX \d+:.*M`)

// TestQueriesUseIndexes: no query of documents reads a table from its beginning to its end, whatever it
// filters and sorts by, looks for, compares with and counts.
func TestQueriesUseIndexes(t *testing.T) {
	d, err := OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), storage.NewCheck(4), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for _, index := range storage.Indices { // the space is there, for a query to be more than nothing
		if err := d.Delete(t.Context(), "acme", index, "none"); err != nil {
			t.Fatal(err)
		}
	}
	checked := 0
	check := func(what string, b *statement) {
		t.Helper()
		checked++
		steps, err := collect(t.Context(), d.db.readers, func(rows *sql.Rows) (step string, err error) {
			var id, parent, unused int
			err = rows.Scan(&id, &parent, &unused, &step)
			return step, err
		}, "EXPLAIN QUERY PLAN "+b.text.String(), b.args...)
		if err != nil || len(steps) == 0 {
			t.Fatalf("%s: %v: %s", what, err, b.text.String())
		}
		for _, step := range steps {
			of, scans := strings.CutPrefix(step, "SCAN ")
			made := slices.Contains(steps, "CO-ROUTINE "+of) // by other steps
			if scans && !made && of != "CONSTANT ROW" && !matches.MatchString(of) && !strings.HasPrefix(of, "(subquery") {
				t.Errorf("%s: %s\n%s\n%s", what, step, b.text.String(), strings.Join(steps, "\n"))
			}
		}
	}
	const match = `words : ("some" OR "words")`
	for _, index := range storage.Indices {
		fields, err := storage.Fields(index)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			for _, sort := range []string{"", "-_position", f.Name, "-" + f.Name} {
				for name, q := range map[string]storage.Query{
					"all": {}, "term": {Terms: map[string][]string{f.Name: {"1", "2"}}}, "range": {Ranges: map[string]storage.Range{f.Name: {GTE: "1"}}}, "before": {Before: 7},
				} {
					q.Sort = sort
					s, err := d.selection(t.Context(), "acme", index, q)
					if err != nil || s == nil {
						continue // the field is not of that kind
					}
					for by := -1; by < len(s.filters) && sort == ""; by++ {
						what := fmt.Sprint(index, " ", name, " ", f.Name, " by filter ", by)
						check(what+": text", s.best(match, by))
						if f.Kind == storage.Dense {
							check(what+": vector", s.nearest(storage.Vector{Member: f.Name, Values: []float32{1, 2, 3, 4}}, by))
						}
						check(what+": buckets", s.counted(f, storage.Field{}, "", by))
						check(what+": sum of what matches", s.counted(storage.Field{}, f, match, by))
					}
					for _, after := range []*cursor{nil, {Key: int64(3), Row: 5}, {Position: 3, Row: 5}} {
						s.after = after
						what := index + " " + name + " " + f.Name + " by " + sort
						for i := range s.filters {
							check(what, s.narrow(i))
						}
						switch {
						case s.ByPosition:
							check(what, s.wideByPosition())
						case s.Sort != nil:
							check(what, s.wideByMember())
							check(what, s.wideMissing())
						}
					}
				}
			}
		}
	}
	if checked < 3000 {
		t.Errorf("%d plans were looked at", checked)
	}
	for what, query := range map[string]string{
		"a document":  "SELECT row, position, body FROM documents WHERE space = 1 AND id = 'x'",
		"a space":     "SELECT number FROM spaces WHERE name = 'x'",
		"its terms":   "SELECT value FROM terms INDEXED BY terms_row WHERE row = 1",
		"its removal": dropTerm, "its vectors' removal": dropVector,
	} {
		b := &statement{}
		b.add(query)
		for range strings.Count(query, "?") {
			b.args = append(b.args, json.Number("1"))
		}
		check(what, b)
	}
}
