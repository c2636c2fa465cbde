package main

import (
	"fmt"
	"slices"

	"aob.dev/writ/bench/measure"
)

// comparableRuns is how many runs each side of a comparison needs. Two sets of four ratios of
// one distribution lie apart in 2 of 70 orders.
const comparableRuns = 4

// change compares a row with the same one of this earlier report: the ratio here, and by how
// many percent it has changed since. A change is "~", noise, if the ratios of both sides
// overlap. It has a "?" if a side has fewer runs than tell it from noise.
func (earlier report) change(now measure.Row) (ratio, change string) {
	i := slices.IndexFunc(earlier.Rows, func(w measure.Row) bool {
		return w.Benchmark == now.Benchmark && w.Name == now.Name
	})
	if i < 0 || earlier.Rows[i].Ratio == 0 {
		return "-", "new"
	}
	was := earlier.Rows[i]
	change = fmt.Sprintf("%+.1f %%", 100*(now.Ratio/was.Ratio-1))
	switch {
	case min(len(now.Ratios), len(was.Ratios)) < comparableRuns:
		change += " ?"
	case slices.Min(now.Ratios) <= slices.Max(was.Ratios) && slices.Min(was.Ratios) <= slices.Max(now.Ratios):
		change = "~"
	}
	return fmt.Sprintf("%.2f", was.Ratio), change
}
