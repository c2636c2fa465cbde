package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"aob.dev/writ/bench/measure"
)

// report is what one call measured.
type report struct {
	Machine machine       `json:"machine"`
	Rows    []measure.Row `json:"rows"`
}

// readReport reads a file that write has written, or a call with --json.
func readReport(file string) (r report, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // G304: named on the command line
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Rows) == 0 {
		return r, fmt.Errorf("%s is not the output of go run ./bench NAME --json", file)
	}
	return r, nil
}

func (r report) write(file string) error {
	f, err := os.Create(file) //nolint:gosec // G304: named on the command line
	if err != nil {
		return err
	}
	return errors.Join(writeJSON(f, r), f.Close())
}

// print writes the machine and the rows as a table. Beside an earlier report, each row has
// what changed.
func (r report) print(out io.Writer, earlier *report) {
	fmt.Fprintln(out, r.Machine)
	if earlier != nil {
		fmt.Fprintln(out, "earlier:", earlier.Machine)
	}
	head := "benchmark\tname\tours\tbaseline\tratio\tunit\tn"
	if earlier != nil {
		head += "\tearlier\tchange"
	}
	fmt.Fprintln(out, head)
	for _, w := range r.Rows {
		fmt.Fprintf(out, "%s\t%s\t%.4g\t%.4g\t%.2f\t%s\t%d", w.Benchmark, w.Name, w.Measured, w.Baseline, w.Ratio, w.Unit, w.N)
		if earlier != nil {
			ratio, change := earlier.change(w)
			fmt.Fprintf(out, "\t%s\t%s", ratio, change)
		}
		fmt.Fprintln(out)
	}
}
