package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/policies"
)

func policyExplain(std IO) *cobra.Command {
	var dir, policy string
	cmd := answering(std, &cobra.Command{
		Use: "explain INTENT_ID", Short: "Say which rules decided a recorded order, and over which input", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		instead, err := namedEngine(cmd.Context(), policy)
		if err != nil {
			return answer{}, err
		}
		var x audit.Explained
		err = withArchive(cmd.Context(), dir, func(a *datadir.Archive) (err error) {
			x, err = audit.Explain(cmd.Context(), a.Source, args[0], instead)
			return err
		})
		if err != nil {
			return answer{}, err
		}
		var text strings.Builder
		err = printExplained(&text, x)
		return answer{data: x, text: text.String()}, err
	}, dataFlag(&dir))
	cmd.Flags().StringVar(&policy, "policy", "", "directory or bundle to decide with, in place of the policy of then")
	return cmd
}

func printExplained(w io.Writer, x audit.Explained) error {
	d := x.Recorded
	fmt.Fprintf(w, "%s  position %d\ndecided %s %s %s %s\n", x.IntentID, x.Position, d.Verdict, d.Code, d.Pointer, d.Reason)
	if x.Policy == nil {
		_, err := fmt.Fprintln(w, "policy was not asked: an earlier stage refused it")
		return err
	}
	fmt.Fprintf(w, "policy %s: %s\n", x.Policy.Policy, x.Policy.Verdict)
	for _, r := range x.Policy.Fired {
		fmt.Fprintf(w, "  %s %s  %s\n    %s\n    %s:%d\n", r.Effect, r.ID, r.Title, r.Reason, r.File, r.Line)
	}
	return printJSON(w, x.Policy.Input)
}

// namedEngine compiles the tree that a flag names; none: nil.
func namedEngine(ctx context.Context, place string) (*policies.Engine, error) {
	if place == "" {
		return nil, nil
	}
	tree, err := readTree([]string{place})
	if err != nil {
		return nil, malformed(err)
	}
	e, err := policies.NewTree(ctx, tree)
	if err != nil {
		return nil, malformed(err)
	}
	return e, nil
}

func policyBacktest(std IO) *cobra.Command {
	var dir, bundle, policy, today, format string
	var o audit.Trial
	var asJSON bool
	cmd := &cobra.Command{
		Use: "backtest --policy NEW", Short: "Decide the recorded orders under a new policy; exit 1 where one comes out otherwise", Args: cobra.NoArgs,
		Long: "Decide every recorded order under today's policy and under a new one, with the\n" +
			"roles, plans, tasks and directory of then. Nothing is carried out. Of a bundle,\n" +
			"today's policy is that of each record, unless --today names one.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				format = "json"
			}
			print, known := map[string]func(io.Writer, audit.Backtest) error{"text": printBacktest, "json": func(w io.Writer, b audit.Backtest) error { return printJSON(w, b) }, "junit": junitBacktest}[format]
			if !known {
				return usage(fmt.Errorf("--format: %q is none of text, json, junit", format))
			}
			var err error
			if o.New, err = namedEngine(cmd.Context(), policy); err != nil {
				return err
			}
			if o.Today, err = namedEngine(cmd.Context(), today); err != nil {
				return err
			}
			if terminal(std.Err) {
				o.Progress = func(n int64) { fmt.Fprintf(std.Err, "\r%d records", n) }
				defer fmt.Fprint(std.Err, "\r")
			}
			b, err := backtest(cmd.Context(), std, dir, bundle, o)
			if err != nil {
				return err
			}
			if err := print(std.Out, b); err != nil {
				return err
			}
			if b.Flipped > 0 {
				return no(fmt.Errorf("%d of %d decisions come out otherwise", b.Flipped, b.Records))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&policy, "policy", "", "the new policy: directory or bundle")
	cmd.Flags().StringVar(&today, "today", "", "today's policy: directory or bundle (default: the one in force by the record)")
	cmd.Flags().StringVar(&dir, "data", config.Default().Data, "data directory; the process that uses it may be running")
	cmd.Flags().StringVar(&bundle, "bundle", "", "records of a bundle (writ audit export) instead; verify it first")
	cmd.Flags().Var(&timeFlag{at: &o.Since, ago: true}, "since", "orders from this RFC 3339 time, or from so long ago (7d, 12h)")
	cmd.Flags().StringVar(&o.Tenant, "tenant", "", "orders of this tenant")
	cmd.Flags().StringVar(&format, "format", "text", "text, json, junit")
	jsonFlag(cmd, &asJSON)
	mustGive(cmd, "policy")
	return cmd
}

func backtest(ctx context.Context, std IO, dir, bundle string, o audit.Trial) (b audit.Backtest, err error) {
	if bundle != "" {
		r, closeAll, err := openBundle(std, bundle)
		if err != nil {
			return b, malformed(err)
		}
		defer closeAll()
		if b, err = audit.BacktestBundle(ctx, r, o); err != nil {
			return b, malformed(err)
		}
		return b, nil
	}
	return b, withArchive(ctx, dir, func(a *datadir.Archive) error {
		if o.Today == nil {
			source, err := audit.PolicyInForce(ctx, a.Source)
			if err == nil {
				o.Today, err = policies.New(ctx, source)
			}
			if err != nil {
				return malformed(fmt.Errorf("today's policy: %w: name one with --today", err))
			}
		}
		if b, err = audit.BacktestRecords(ctx, a.Source, o); err != nil {
			return malformed(err)
		}
		return nil
	})
}

func printBacktest(w io.Writer, b audit.Backtest) error {
	fmt.Fprintf(w, "%d decisions, %d flips, %d not replayable; %.0f decisions/s\n", b.Records, b.Flipped, b.Unreplayable, b.PerSecond)
	t := table(w)
	if len(b.Groups) > 0 {
		fmt.Fprintln(t, "before\tafter\trule\ttenant\tcount\tfor example")
	}
	for _, g := range b.Groups {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", g.Before, g.After, g.Rule, g.Tenant, g.Count, g.Samples[0])
	}
	flush(t)
	for why, n := range b.Why {
		fmt.Fprintf(w, "not replayable: %d: %s\n", n, why)
	}
	return nil
}

// junitBacktest is one test for each rule and tenant that decides otherwise.
func junitBacktest(w io.Writer, b audit.Backtest) error {
	cases := []policies.Case{{Suite: "backtest", Name: fmt.Sprintf("%d recorded decisions", b.Records), Passed: true, Took: time.Duration(b.Seconds * float64(time.Second))}}
	for _, g := range b.Groups {
		cases = append(cases, policies.Case{
			Suite: "backtest", Name: fmt.Sprintf("%s → %s by %s for %s", g.Before, g.After, g.Rule, g.Tenant),
			Reason: fmt.Sprintf("%d decisions, for example %v", g.Count, g.Samples),
		})
	}
	return printJUnit(w, cases)
}
