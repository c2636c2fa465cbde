package cli

import (
	"encoding/json"
	"strings"
	"testing"
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
	run := func(args ...string) (s simulated) {
		t.Helper()
		got := writ(t, append([]string{"bench", "cell", "--simulate", "--json"}, args...)...)
		if got.code != ExitOK {
			t.Fatalf("exit %d: %s", got.code, got.err)
		}
		if err := json.Unmarshal([]byte(got.out), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain := run("--orders-per-second", "5,50")
	if len(plain.Plans) != 2 || plain.Plans[0].SaturatesFirst == "" || len(plain.Measured) == 0 || len(plain.Assumptions) == 0 {
		t.Fatalf("%+v", plain)
	}
	if f := plain.Plans[1].Figures[0]; f.Name != "orders_per_second" || f.Value != 50 {
		t.Errorf("%+v", f)
	}
	var rows []map[string]any
	for name, value := range plain.Measured {
		rows = append(rows, map[string]any{"name": name, "ours": 2 * value})
	}
	raw, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	other := run("--agents", "50", "--assume", "agent_seconds=10", "--assume", "price_core=1", "--measured", file(t, "here.json", string(raw)))
	if f := other.Plans[0].Figures[0]; f.Value != 5 {
		t.Errorf("50 agents with an order every 10 seconds: %+v", f)
	}
	if other.Measured["router"] != 2*plain.Measured["router"] {
		t.Errorf("router: %g and %g", other.Measured["router"], plain.Measured["router"])
	}
	if got := writ(t, "bench", "cell", "--simulate", "--orders-per-second", "5,50"); got.code != ExitOK || !strings.Contains(got.out, "saturates_first") {
		t.Errorf("exit %d: %s %s", got.code, got.out, got.err)
	}
	for args, want := range map[string]string{
		"cell --simulate": "--orders-per-second", "decide --simulate": "cell alone", "cell --simulate --orders-per-second 0": "0 orders/s",
		"cell --simulate --agents 5 --assume zipf": "--assume", "cell --simulate --agents 5 --measured /nowhere": "--measured",
		"cell --simulate --orders-per-second 100000 --assume zipf=1": "largest tenant",
	} {
		if got := writ(t, append([]string{"bench"}, strings.Fields(args)...)...); got.code != ExitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit %d: %s", args, got.code, got.err)
		}
	}
}
