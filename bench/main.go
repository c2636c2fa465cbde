// Bench measures writ beside baselines that it takes in turns with it, and works out what an
// installation takes:
//
//	go run ./bench NAME [flags]
//
// Package measure says what each NAME is, package scale what `cell --simulate` goes by. The
// name all means every one of them. To see what a change costs or saves:
//
//	go run ./bench all --runs 5 --out before.json
//	go run ./bench all --runs 5 --compare before.json
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
	names := measure.Names()
	switch {
	case len(args) == 0 || args[0] != "all" && !slices.Contains(names, args[0]):
		return fmt.Errorf("name what to measure: go run ./bench %s|all [flags]", strings.Join(names, "|"))
	case args[0] != "all":
		names = args[:1]
	}
	var o measure.Options
	var s simulation
	flags := flag.NewFlagSet("bench "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print JSON")
	runs := flags.Int("runs", 1, "run everything this many times, and print medians")
	file := flags.String("out", "", "write JSON to this `FILE`, too")
	compare := flags.String("compare", "", "compare with the `FILE` of an earlier call with --out or --json; 4 runs and more on each side tell a change from noise")
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
	if *runs < 1 {
		return fmt.Errorf("--runs %d: once at least", *runs)
	}
	var earlier *report
	if *compare != "" {
		r, err := readReport(*compare)
		if err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
		earlier = &r
	}
	r := report{Machine: thisMachine()}
	var err error
	if r.Rows, err = measure.Runs(ctx, names, *runs, o); err != nil {
		return err
	}
	if *file != "" {
		if err := r.write(*file); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return printed(out, *asJSON, r, func(t io.Writer) { r.print(t, earlier) })
}

// printed writes data as JSON, or as the table that text writes.
func printed(out io.Writer, asJSON bool, data any, text func(io.Writer)) error {
	if asJSON {
		return writeJSON(out, data)
	}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	text(t)
	return t.Flush()
}

func writeJSON(out io.Writer, data any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(data)
}
