package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/demo"
)

func demoCommand(std IO) *cobra.Command {
	var o demo.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Show the whole system on real data, then verify all of it", Args: cobra.NoArgs,
		Long: "Start an embedded writ and a skill server with a week of real earthquakes (USGS),\n" +
			"ask a question through the public API, print the answer, the plan and every sealed\n" +
			"order, export the record as a bundle, verify it offline and decide it again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := "error"
			if asJSON {
				level = "warn"
			}
			o.Log = logger(std, level)
			p := painter(std, std.Err)
			if !asJSON {
				fmt.Fprintln(std.Err, p.bold(demo.Question))
				o.Progress = func(s demo.Step) { fmt.Fprintln(std.Err, p.dim(progress(s.State, s.Message, s.Step))) }
			}
			res, err := demo.Run(cmd.Context(), o)
			if err != nil {
				return no(err)
			}
			if asJSON {
				return printJSON(std.Out, res)
			}
			printDemo(std, res)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Data, "data", "", "keep the data in this directory (default: a temporary one)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func printDemo(std IO, r demo.Result) {
	p := painter(std, std.Out)
	w := std.Out
	fmt.Fprintf(w, "\n%s\n\n", p.bold("Answer"))
	t := table(w)
	fmt.Fprintln(t, "  #\tmagnitude\tplace")
	for _, a := range r.Answer {
		fmt.Fprintf(t, "  %d\t%.1f\t%s\n", a.Rank, a.Magnitude, a.Place)
	}
	flush(t)
	fmt.Fprintf(w, "\n%s %s, revision %d, %d replans\n", p.bold("Plan"), r.Plan.PlanID, r.Plan.Revision, r.Plan.ReplanCount)
	for _, s := range r.Plan.Steps {
		fmt.Fprintf(w, "  %d. %s  %s → %s  %s\n", s.Step, s.Task, p.dim(strings.Join(s.Skills, ", ")), p.dim(s.ReturnSpec.Shape), p.green(string(s.Status)))
	}
	fmt.Fprintf(w, "\n%s\n", p.bold("Sealed orders"))
	t = table(w)
	fmt.Fprintln(t, "  pos\ttype\tsigned by\tintent_id\tcode\tpolicies\tms")
	for _, o := range r.Orders {
		fmt.Fprintf(t, "  %d\t%s\t%s\t%s\t%s\t%s\t%d\n", o.Position, o.Type, o.Role, short(o.IntentID), o.Code, orDash(o.PolicyIDs), o.DurationMS)
	}
	flush(t)
	if l := r.Large; l != nil {
		fmt.Fprintf(w, "\n%s %d bytes stayed in a file of the step; script %s read %d rows and gave %d\n", p.bold("Large response"),
			l.SizeBytes, short(l.ScriptHash), l.InputRows, l.OutputRows)
	}
	fmt.Fprintf(w, "\n%s offline, from an exported bundle: %d records and their Merkle proofs, %d orders, %d receipts; %d decisions come out the same again; %.1f s in all\n",
		p.green("Verified"), r.Verified.Records, r.Verified.Orders, r.Verified.Receipts, r.Verified.Replayed, r.Seconds)
}

func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 4, 2, ' ', 0) }

func flush(t *tabwriter.Writer) { _ = t.Flush() } // fails only with the output itself

// short shows the beginning of a digest.
func short(id string) string {
	if len(id) > 19 {
		return id[:19] + "…"
	}
	return id
}

func orDash(s []string) string {
	if len(s) == 0 {
		return "–"
	}
	return strings.Join(s, ",")
}
