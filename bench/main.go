// Bench measures writ beside baselines that it takes in turns with it, and works out what an
// installation takes:
//
//	go run ./bench NAME [flags]
//
// Package measure says what each NAME is, package scale what `cell --simulate` goes by.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"

	"aob.dev/writ/bench/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures args[0] and writes its rows to out: as a table, or as JSON with --json.
func run(ctx context.Context, args []string, out, stderr io.Writer) error {
	if len(args) == 0 || !slices.Contains(measure.Names(), args[0]) {
		return fmt.Errorf("name what to measure: go run ./bench %s [flags]", strings.Join(measure.Names(), "|"))
	}
	var o measure.Options
	var s simulation
	flags := flag.NewFlagSet("bench "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print JSON")
	flags.DurationVar(&o.Time, "time", measure.DefaultTime, "how long each measurement runs")
	flags.Int64Var(&o.Intents, "intents", measure.DefaultIntents, "for audit and cell: number of intents in the log; 1,000,000 need about 15 GB in TMPDIR")
	flags.Int64Var(&o.Records, "records", 0, "for journal: measure commits as the journal grows to this many records; 1,000,000 need about 2 GB in TMPDIR")
	flags.Int64Var(&o.Documents, "documents", measure.DefaultDocuments, "for storage: number of documents that are searched; 1,000,000 need about 11 GB in TMPDIR")
	flags.StringVar(&o.OpenSearch, "opensearch", "", "for storage: URL of an OpenSearch to measure, too; its indices bench…-* are not removed")
	s.flags(flags)
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		return errors.Join(err, fmt.Errorf("see: go run ./bench %s -h", args[0]))
	}
	if s.on {
		if args[0] != "cell" {
			return errors.New("--simulate goes with cell alone")
		}
		return s.print(out, *asJSON)
	}
	rows, err := measure.Run(ctx, args[0], o)
	if err != nil {
		return err
	}
	return printed(out, *asJSON, rows, func(t io.Writer) {
		fmt.Fprintln(t, "name\tours\tbaseline\tratio\tunit\tn")
		for _, r := range rows {
			fmt.Fprintf(t, "%s\t%.4g\t%.4g\t%.2f\t%s\t%d\n", r.Name, r.Measured, r.Baseline, r.Ratio, r.Unit, r.N)
		}
	})
}

// printed writes data as JSON, or as the table that text writes.
func printed(out io.Writer, asJSON bool, data any, text func(io.Writer)) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(data)
	}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	text(t)
	return t.Flush()
}
