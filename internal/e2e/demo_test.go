package e2e

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/demo/quakes"
)

// TestDemo computes the demo's answer from the feed itself: the ten strongest,
// in feed order where they tie.
func TestDemo(t *testing.T) {
	t.Parallel()
	raw, err := quakes.Feed()
	if err != nil {
		t.Fatal(err)
	}
	var feed struct {
		Features []struct {
			Properties struct {
				Mag   *float64 `json:"mag"`
				Place string   `json:"place"`
			} `json:"properties"`
		} `json:"features"`
	}
	if err := json.Unmarshal(raw, &feed); err != nil {
		t.Fatal(err)
	}
	var want []demo.Row
	for _, f := range feed.Features {
		if f.Properties.Mag != nil {
			want = append(want, demo.Row{Place: f.Properties.Place, Magnitude: *f.Properties.Mag})
		}
	}
	slices.SortStableFunc(want, func(a, b demo.Row) int { return cmp.Compare(b.Magnitude, a.Magnitude) })
	want = want[:10]
	for i := range want {
		want[i].Rank = i + 1
	}
	res, err := demo.Run(t.Context(), demo.Options{Data: t.TempDir(), Documents: documents(t.TempDir()), Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want, res.Answer); d != "" {
		t.Errorf("answer (-want +got):\n%s", d)
	}
	if !res.VerifyReport.OK || res.VerifyReport.Intents != int64(len(res.Intents)) {
		t.Errorf("verified %+v of %d intents", res.VerifyReport, len(res.Intents))
	}
	if res.Large == nil || res.Large.SizeBytes != int64(len(raw)) || res.Large.InputRows != int64(len(feed.Features)) || res.Large.OutputRows != 10 {
		t.Errorf("large response %+v; the feed has %d bytes and %d features", res.Large, len(raw), len(feed.Features))
	}
}
