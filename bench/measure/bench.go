// Package measure measures what the product promises to be fast at, each thing
// beside a baseline that is taken in turns with it in the same run:
//
//	decide   process CPU of a decision (decode to policy, no I/O) over one bare
//	         ed25519.Verify of the same signing inputs
//	intents   whole intents per second (in, decided, committed, dispatched with a
//	         ticket, outcome durable, receipt) beside bare fdatasync of one
//	         record and JetStream publishes that sync always; the process CPU of one
//	         over one bare ed25519.Verify; and intents in a cell,
//	         whose journal is a stream on three servers, beside publishes to it
//	journal  durable commits per second beside the same two
//	cell     what a cell of a cluster spends on an intent (CPU of its roles, bytes,
//	         documents, and groups of commits on a cluster of three), which the
//	         simulation of package scale goes by
//	audit    verifying and replaying a bundle of real intents, and trying a policy
//	         on it, beside bare ed25519.Verify of as many, on every processor;
//	         and opening its journal beside scanning it
//	storage  durable writes of many callers beside one, text search as documents
//	         grow beside bare FTS5, neighbours beside a linear scan; and OpenSearch
//	         beside SQLite
//	ask      having an agent asked beside the call of an MCP server's tool, each from
//	         the reply of the model to its next request, with models that answer at once
//	mcp      calls of a tool through writ's MCP server, each recorded, beside the same calls
//	         to its server and through a proxy that only passes them on; and what writ
//	         spends on one
//	python   scripts in the sandbox beside the same in bare python3 -I -S -E -B
//
// Only the ratios carry over to another machine or another hour. Everything
// runs in this process, on temporary files that are removed.
package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DefaultTime is how long each measurement runs by default.
const DefaultTime = 2 * time.Second

// Options of a run. The zero value works.
type Options struct {
	Time    time.Duration // of each measurement with its baselines; 0: DefaultTime
	Intents int64         // of the log that audit verifies; 0: DefaultIntents
	// Records that the journal grows to; 0: its growth is not measured. Each is
	// some 1.6 KB on disk.
	Records int64
	// Documents that storage searches; 0: DefaultDocuments. Each is some 8 KB
	// on disk, in three stores.
	Documents  int64
	OpenSearch string // URL of one that storage measures, too
}

// Row is one measured thing beside its baseline.
type Row struct {
	Benchmark string    `json:"benchmark"` // of Names
	Name      string    `json:"name"`
	Measured  float64   `json:"ours"`     // in Unit
	Baseline  float64   `json:"baseline"` // in Unit
	Ratio     float64   `json:"ratio"`    // Measured over Baseline
	Unit      string    `json:"unit"`     // of Measured and Baseline
	N         int64     `json:"n"`        // how many of ours were measured
	Ratios    []float64 `json:"ratios"`   // of each run
}

func newRow(name string, ours, baseline float64, unit string, n int64) Row {
	return Row{Name: name, Measured: ours, Baseline: baseline, Ratio: ours / baseline, Unit: unit, N: n}
}

var benchmarks = map[string]func(context.Context, Options) ([]Row, error){
	"ask":     ask,
	"audit":   audited,
	"cell":    cell,
	"decide":  decide,
	"journal": journal,
	"mcp":     mcpCalls,
	"intents": intentRows,
	"python":  python,
	"storage": store,
}

// Names lists what can be measured.
func Names() []string { return slices.Sorted(maps.Keys(benchmarks)) }

// Run measures one of Names. It ends early with ctx's error.
func Run(ctx context.Context, name string, o Options) ([]Row, error) {
	run, ok := benchmarks[name]
	if !ok {
		return nil, fmt.Errorf("no benchmark %q: there are %s", name, strings.Join(Names(), ", "))
	}
	if o.Time <= 0 {
		o.Time = DefaultTime
	}
	if o.Intents <= 0 {
		o.Intents = DefaultIntents
	}
	if o.Documents <= 0 {
		o.Documents = DefaultDocuments
	}
	rows, err := run(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("bench %s: %w", name, err)
	}
	for i := range rows {
		rows[i].Benchmark, rows[i].Ratios = name, []float64{rows[i].Ratio}
	}
	return rows, nil
}

// median of at least one value; the values are sorted in place.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
