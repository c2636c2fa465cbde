package measure

import (
	"context"
	"slices"
)

// Runs measures the named benchmarks one after the other, and all of them again for each
// further run, so that what slows the machine for a while slows no benchmark alone. A row has
// the medians of its runs, their N in all, and the ratio of each.
func Runs(ctx context.Context, names []string, runs int, o Options) (rows []Row, err error) {
	var all [][]Row // of each row, one of each run
	for run := range runs {
		i := 0
		for _, name := range names {
			got, err := Run(ctx, name, o)
			if err != nil {
				return nil, err
			}
			for _, row := range got {
				if run == 0 {
					all = append(all, nil)
				}
				all[i] = append(all[i], row)
				i++
			}
		}
	}
	for _, runs := range all {
		rows = append(rows, medians(runs))
	}
	return rows, nil
}

// medians of the runs of a row.
func medians(runs []Row) Row {
	of := func(figure func(Row) float64) (all []float64) {
		for _, r := range runs {
			all = append(all, figure(r))
		}
		return all
	}
	m := runs[0]
	m.Ratios = of(func(r Row) float64 { return r.Ratio })
	m.Ratio = median(slices.Clone(m.Ratios))
	m.Measured = median(of(func(r Row) float64 { return r.Measured }))
	m.Baseline = median(of(func(r Row) float64 { return r.Baseline }))
	m.N = 0
	for _, r := range runs {
		m.N += r.N
	}
	return m
}
