package model

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

// feedQuakes reads the feed without any of the code under test.
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
	if !o.plan.Feasible || len(o.plan.Steps) != 2 {
		t.Fatalf("plan: %+v", o.plan)
	}
	one, two := o.plan.Steps[0], o.plan.Steps[1]
	if one.ReturnSpec.Shape != "array<{place: string, magnitude: number}>" || one.InputFromStep != 0 {
		t.Errorf("step 1: %+v", one)
	}
	if two.ReturnSpec.Shape != "array<{rank: integer, place: string, magnitude: number}>" || two.InputFromStep != 1 {
		t.Errorf("step 2: %+v", two)
	}
	t.Log(one.Task)
	t.Log(two.Task)
	if len(o.scripts) > 0 {
		t.Log(o.scripts[0])
	}
	if o.partial {
		if !strings.Contains(o.scripts[0], `"properties", "mag"), reverse=True)`) || !strings.Contains(o.scripts[0], "rows[:10]") {
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
	t.Log(o.answer)
	if !strings.HasPrefix(o.answer, "These are the 10 with the highest magnitude:") || !strings.Contains(o.answer, want[9].Place) {
		t.Error(o.answer)
	}
}
