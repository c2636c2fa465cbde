package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/bench"
)

func benchCommand(std IO) *cobra.Command {
	var o bench.Options
	cmd := answering(std, &cobra.Command{
		Use: "bench NAME", Short: "Measure, as ratios taken within one run", Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: bench.Names(),
		Long: "Measure one thing beside its baseline, in turns within one run:\n  decide  CPU of a decision over one bare ed25519.Verify\n  orders  whole orders a second, durable, beside bare fsync and JetStream sync-always",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		rows, err := bench.Run(cmd.Context(), args[0], o)
		return answer{data: rows, text: aligned(func(t io.Writer) {
			fmt.Fprintln(t, "name\tours\tbaseline\tratio\tunit\tn")
			for _, r := range rows {
				fmt.Fprintf(t, "%s\t%.4g\t%.4g\t%.2f\t%s\t%d\n", r.Name, r.Ours, r.Baseline, r.Ratio, r.Unit, r.N)
			}
		})}, err
	})
	cmd.Flags().DurationVar(&o.Time, "time", bench.DefaultTime, "how long each measurement runs")
	cmd.Flags().Int64Var(&o.Orders, "orders", bench.DefaultOrders, "of audit: how many orders its log has; 1,000,000 need some 15 GB below TMPDIR")
	cmd.Flags().Int64Var(&o.Records, "records", 0, "of journal: measure what becomes of commits as it grows to so many records; 1,000,000 need 2 GB below TMPDIR")
	cmd.Flags().Int64Var(&o.Documents, "documents", bench.DefaultDocuments, "of storage: how many documents are searched; 1,000,000 need some 7 GB below TMPDIR")
	cmd.Flags().Int64Var(&o.Texts, "texts", bench.DefaultTexts, "of storage: how many documents without embeddings text search grows to; 1,000,000 need some 4 GB below TMPDIR")
	cmd.Flags().StringVar(&o.OpenSearch, "opensearch", "", "of storage: URL of an OpenSearch to measure, too; its indices bench…-* stay")
	return cmd
}
