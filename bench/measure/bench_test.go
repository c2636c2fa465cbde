package measure_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/bench/measure"
)

// TestMeasures everything for a moment: the figures say nothing, that there
// are some does.
func TestMeasures(t *testing.T) {
	for _, name := range measure.Names() {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			rows, err := measure.Run(t.Context(), name, measure.Options{Time: 50 * time.Millisecond, Intents: 300, Documents: 300})
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				t.Fatal("no rows")
			}
			for _, r := range rows {
				if r.Name == "" || r.Unit == "" || r.N <= 0 || r.Baseline <= 0 || r.Measured < 0 {
					t.Errorf("row %+v", r)
				}
				if r.Ratio != r.Measured/r.Baseline {
					t.Errorf("%s: ratio %g of %g and %g", r.Name, r.Ratio, r.Measured, r.Baseline)
				}
				if _, err := json.Marshal(r); err != nil {
					t.Errorf("%s: %v", r.Name, err)
				}
			}
		})
	}
}

func TestRunUnknown(t *testing.T) {
	_, err := measure.Run(t.Context(), "nonsense", measure.Options{})
	if err == nil {
		t.Fatal("measured nonsense")
	}
	for _, name := range measure.Names() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestRunEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range measure.Names() {
		if _, err := measure.Run(ctx, name, measure.Options{Time: time.Hour}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func benchmark(b *testing.B, name string) {
	b.Helper()
	var rows []measure.Row
	for b.Loop() {
		var err error
		if rows, err = measure.Run(b.Context(), name, measure.Options{Time: time.Second}); err != nil {
			b.Fatal(err)
		}
	}
	for _, r := range rows {
		b.ReportMetric(r.Ratio, strings.ReplaceAll(r.Name, " ", "_")+"_ratio")
	}
}

func BenchmarkDecide(b *testing.B)  { benchmark(b, "decide") }
func BenchmarkJournal(b *testing.B) { benchmark(b, "journal") }
func BenchmarkIntents(b *testing.B) { benchmark(b, "intents") }
