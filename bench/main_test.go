package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bench/measure"
)

// TestBenchSimulate: a column for each load, by figures of a file and assumptions of the caller.
func TestBenchSimulate(t *testing.T) {
	type simulated struct {
		Plans []struct {
			SaturatesFirst string `json:"saturates_first"`
			Figures        []struct {
				Name  string  `json:"name"`
				Value float64 `json:"value"`
			} `json:"figures"`
		} `json:"plans"`
		Measured    map[string]float64 `json:"measured"`
		Assumptions []struct {
			Name    string  `json:"name"`
			Value   float64 `json:"value"`
			Meaning string  `json:"meaning"`
		} `json:"assumptions"`
	}
	simulate := func(args ...string) (s simulated) {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), append([]string{"cell", "--simulate", "--json"}, args...), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain := simulate("--intents-per-second", "5,50")
	if len(plain.Plans) != 2 || plain.Plans[0].SaturatesFirst == "" || len(plain.Measured) == 0 || len(plain.Assumptions) == 0 {
		t.Fatalf("%+v", plain)
	}
	if f := plain.Plans[1].Figures[0]; f.Name != "intents_per_second" || f.Value != 50 {
		t.Errorf("%+v", f)
	}
	var rows []map[string]any
	for name, value := range plain.Measured {
		rows = append(rows, map[string]any{"name": name, "ours": 2 * value})
	}
	raw, err := json.Marshal(map[string]any{"rows": rows})
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(t.TempDir(), "here.json")
	if err := os.WriteFile(here, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	other := simulate("--agents", "50", "--assume", "agent_seconds=10", "--assume", "price_core=1", "--measured", here)
	if f := other.Plans[0].Figures[0]; f.Value != 5 {
		t.Errorf("50 agents with an intent every 10 seconds: %+v", f)
	}
	if other.Measured["router"] != 2*plain.Measured["router"] {
		t.Errorf("router: %g and %g", other.Measured["router"], plain.Measured["router"])
	}
	var table bytes.Buffer
	if err := run(t.Context(), []string{"cell", "--simulate", "--intents-per-second", "5,50"}, &table, io.Discard); err != nil || !strings.Contains(table.String(), "saturates_first") {
		t.Errorf("%v: %s", err, table.String())
	}
	for args, want := range map[string]string{
		"cell --simulate": "--intents-per-second", "decide --simulate": "cell alone", "cell --simulate --intents-per-second 0": "0 intents per second", "nonsense": "decide|", "decide --time soon": "-time",
		"decide --runs 0": "--runs 0", "journal --time 1ms --out /nowhere/out": "--out", "decide --compare /nowhere": "--compare",
		"cell --simulate --agents 5 --assume zipf": "--assume", "cell --simulate --agents 5 --measured /nowhere": "--measured",
		"cell --simulate --intents-per-second 100000 --assume zipf=1": "largest tenant",
	} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestRows: the rows of a measurement as JSON, each with all its members, and beside an
// earlier report what changed beyond noise.
func TestRows(t *testing.T) {
	measured := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), append([]string{"journal", "--time", "1ms"}, args...), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	raw := measured("--json", "--runs", "2")
	var r struct {
		Machine map[string]any   `json:"machine"`
		Rows    []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) == 0 || r.Machine["cpus"] == nil {
		t.Fatalf("no rows, or no machine: %s", raw)
	}
	for _, row := range r.Rows {
		if d := cmp.Diff([]string{"baseline", "benchmark", "n", "name", "ours", "ratio", "ratios", "unit"}, slices.Sorted(maps.Keys(row))); d != "" {
			t.Errorf("members (-want +got):\n%s", d)
		}
		if ratios, _ := row["ratios"].([]any); len(ratios) != 2 {
			t.Errorf("ratios %v of two runs", row["ratios"])
		}
	}
	earlier := filepath.Join(t.TempDir(), "earlier.json")
	measured("--out", earlier)
	if table := measured("--compare", earlier); !strings.Contains(table, "change") || strings.Count(table, "?") != len(r.Rows) {
		t.Errorf("compared with two runs:\n%s", table)
	}
}

func TestChange(t *testing.T) {
	of := func(ratios ...float64) measure.Row {
		return measure.Row{Benchmark: "decide", Name: "decide", Ratio: ratios[len(ratios)/2], Ratios: ratios}
	}
	for name, test := range map[string]struct {
		was, now measure.Row
		want     string
	}{
		"apart":   {of(2, 2.1, 2.2, 2.3), of(1, 1.1, 1.1, 1.2), "-50.0 %"},
		"overlap": {of(2, 2.1, 2.2, 2.3), of(1, 1.1, 1.1, 2), "~"},
		"few":     {of(2, 2, 2), of(1, 1, 1, 1), "-50.0 % ?"},
		"new":     {measure.Row{Benchmark: "mcp", Name: "decide", Ratio: 1}, of(1, 1, 1, 1), "new"},
	} {
		if _, got := (report{Rows: []measure.Row{test.was}}).change(test.now); got != test.want {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
	}
}
