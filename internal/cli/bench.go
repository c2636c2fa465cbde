package cli

import (
	"errors"
	"fmt"
	"io"

	"aob.dev/writ/internal/bench"
)

func benchCommand(c *command) {
	var o bench.Options
	var s simulation
	c.ValidArgs = bench.Names()
	c.answer = func(args []string) (answer, error) {
		if s.on {
			if args[0] != "cell" {
				return answer{}, usage(errors.New("--simulate goes with cell alone"))
			}
			return s.answer()
		}
		rows, err := bench.Run(c.Context(), args[0], o)
		return answer{data: rows, text: aligned(func(t io.Writer) {
			fmt.Fprintln(t, "name\tours\tbaseline\tratio\tunit\tn")
			for _, r := range rows {
				fmt.Fprintf(t, "%s\t%.4g\t%.4g\t%.2f\t%s\t%d\n", r.Name, r.Ours, r.Baseline, r.Ratio, r.Unit, r.N)
			}
		})}, err
	}
	s.flags(c)
	c.Flags().DurationVar(&o.Time, "time", bench.DefaultTime, "how long each measurement runs")
	c.Flags().Int64Var(&o.Orders, "orders", bench.DefaultOrders, "for audit and cell: number of orders in the log; 1,000,000 need about 15 GB in TMPDIR")
	c.Flags().Int64Var(&o.Records, "records", 0, "for journal: measure commits as the journal grows to this many records; 1,000,000 need about 2 GB in TMPDIR")
	c.Flags().Int64Var(&o.Documents, "documents", bench.DefaultDocuments, "for storage: number of documents that are searched; 1,000,000 need about 11 GB in TMPDIR")
	c.Flags().StringVar(&o.OpenSearch, "opensearch", "", "for storage: URL of an OpenSearch to measure, too; its indices bench…-* are not removed")
}
