package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const strongest = "Which ten places had the strongest earthquakes, and how strong were they?"

type quake struct {
	Rank      int     `json:"rank,omitempty"`
	Place     string  `json:"place"`
	Magnitude float64 `json:"magnitude"`
}

// feedQuakes reads the feed without using the code under test.
func feedQuakes(t *testing.T) (quakes []quake, kinds []string) {
	t.Helper()
	var doc struct {
		Features []struct {
			Properties struct {
				Mag   *float64
				Place string
				Type  string
			}
		}
	}
	if err := json.Unmarshal(readFile(t, "earthquakes.json.gz"), &doc); err != nil {
		t.Fatal(err)
	}
	for _, f := range doc.Features {
		if f.Properties.Mag != nil {
			quakes = append(quakes, quake{Place: f.Properties.Place, Magnitude: *f.Properties.Mag})
			kinds = append(kinds, f.Properties.Type)
		}
	}
	return quakes, kinds
}

func TestStrongestEarthquakes(t *testing.T) {
	o := quakeWorld(t).turn(t, strongest)
	if d := gocmp.Diff([]string{"earthquake_feed", "rank"}, o.selected); d != "" {
		t.Error(d)
	}
	if o.plan.Infeasible != "" || len(o.plan.Steps) != 2 {
		t.Fatalf("plan: %+v", o.plan)
	}
	one, two := o.plan.Steps[0], o.plan.Steps[1]
	if one.ReturnSpec.Shape != "array<{place: string|null, magnitude: number}>" || len(one.Inputs) != 0 {
		t.Errorf("step 1: %+v", one)
	}
	if two.ReturnSpec.Shape != "array<{rank: integer, place: string|null, magnitude: number}>" || !slices.Equal(two.Inputs, []int{1}) {
		t.Errorf("step 2: %+v", two)
	}
	if o.partial {
		if !strings.Contains(o.scripts[0], `\"limit\":10`) {
			t.Error("the script does not take the ten strongest")
		}
		return
	}
	want, _ := feedQuakes(t)
	slices.SortStableFunc(want, func(a, b quake) int { return cmp.Compare(b.Magnitude, a.Magnitude) })
	want = want[:10]
	var got []quake
	if err := json.Unmarshal(o.results[0].Result, &got); err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("step 1 (-want +got):\n%s", d)
	}
	for i := range want {
		want[i].Rank = i + 1
	}
	got = nil
	if err := json.Unmarshal(o.results[1].Result, &got); err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("step 2 (-want +got):\n%s", d)
	}
	if !strings.HasPrefix(o.answer, "I found 10:") || !strings.Contains(o.answer, want[9].Place) {
		t.Error(o.answer)
	}
}

// TestMoreThanFits: a result with more rows than fit is refused, with what to ask for instead.
func TestMoreThanFits(t *testing.T) {
	w := quakeWorld(t)
	for _, task := range []string{"List the earthquakes", "Show all earthquakes", "List the earthquakes sorted by magnitude"} {
		o := w.turn(t, task)
		if !o.partial && (o.failed == nil || !strings.Contains(o.failed.Reason, "ask for the first of them")) {
			t.Errorf("%s: %+v %s: %.600s", task, o.failed, o.plan.Infeasible, o.answer)
		}
	}
}

func TestEarthquakeQuestions(t *testing.T) {
	all, kinds := feedQuakes(t)
	var quakes []quake // the feed also lists blasts and explosions
	for i, q := range all {
		if kinds[i] == "earthquake" {
			quakes = append(quakes, q)
		}
	}
	count := func(keep func(quake) bool) map[string]int {
		n := 0
		for _, q := range quakes {
			if keep(q) {
				n++
			}
		}
		return map[string]int{"count": n}
	}
	sorted := slices.Clone(quakes)
	slices.SortStableFunc(sorted, func(a, b quake) int { return cmp.Compare(b.Magnitude, a.Magnitude) })
	ranked := slices.Clone(sorted[:5])
	for i := range ranked {
		ranked[i].Rank = i + 1
	}
	tests := []struct {
		task string
		want any
	}{
		{"How many earthquakes were there?", count(func(quake) bool { return true })},
		{"How many earthquakes had a magnitude above 5?", count(func(q quake) bool { return q.Magnitude > 5 })},
		{"How many earthquakes had a magnitude of at least 6?", count(func(q quake) bool { return q.Magnitude >= 6 })},
		{"How many earthquakes in Taiwan had a magnitude over 4?", count(func(q quake) bool { return q.Magnitude > 4 && strings.Contains(q.Place, "Taiwan") })},
		{"Which five places had the earthquakes with the highest magnitude?", ranked},
		{"Which place had the strongest earthquake?", sorted[:1]},
		{"Where was the strongest earthquake?", sorted[:1]},
		{"The 5 earthquakes with the highest magnitude", ranked},
	}
	w := quakeWorld(t)
	for _, tt := range tests {
		o := w.turn(t, tt.task)
		switch {
		case o.plan.Infeasible != "" || o.failed != nil:
			t.Errorf("%s: %s %+v", tt.task, o.plan.Infeasible, o.failed)
		case !o.partial:
			sameJSON(t, tt.want, o.results[len(o.results)-1].Result)
		}
	}
	for _, task := range []string{"How deep was the strongest earthquake?", "What are the 5 biggest quakes of the week?", "How many earthquakes stronger than 4 were there?", "Which earthquakes did people report?", "Which earthquakes had a tsunami?", "How many places had earthquakes?"} {
		if o := w.turn(t, task); o.plan.Infeasible == "" || !strings.Contains(o.answer, `Try "How many earthquakes are there?"`) {
			t.Errorf("%s: %s %+v", task, o.answer, o.plan)
		}
	}
}
