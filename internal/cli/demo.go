package cli

import (
	"fmt"
	"strings"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/demo"
)

func demoCommand(c *command) {
	var o demo.Options
	c.run = func([]string) error {
		level := "error"
		if c.asJSON {
			level = "warn"
		}
		o.Log = logger(c.std, level)
		p := painter(c.std, c.std.Err)
		if !c.asJSON {
			fmt.Fprintln(c.std.Err, p.bold(demo.Question))
			o.Progress = func(s bus.StatusData) { fmt.Fprintln(c.std.Err, p.dim(progress(s))) }
		}
		res, err := demo.Run(c.Context(), o)
		if err != nil {
			return err
		}
		if c.asJSON {
			return printJSON(c.std.Out, res)
		}
		printDemo(c.std, res)
		return nil
	}
	c.Flags().StringVar(&o.Data, "data", "", "keep the data in this directory (default: a temporary one)")
	c.jsonFlag()
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
