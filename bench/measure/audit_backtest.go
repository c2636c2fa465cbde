package measure

import (
	"context"
	"fmt"
	"maps"
	"os"

	"aob.dev/writ/audit"
	"aob.dev/writ/policies"
)

// stricter denies something that every turn of the log does, so that a backtest
// has flips to find.
const stricter = `package writ.ext.bench

# METADATA
# title: No reads
# description: Files are not read.
# custom:
#   id: bench.reads
deny contains {"id": "bench.reads", "reason": "Files are not read."} if input.intent.type == "read_lines"
`

// backtest tries a stricter policy on the log: today's and the new one decide
// every intent with the engine that decides in production, each distinct question once.
func (m madeLog) backtest(ctx context.Context, bare float64) (rows []Row, err error) {
	today, err := policies.New(policies.Embedded())
	if err != nil {
		return nil, err
	}
	source := maps.Clone(policies.Embedded())
	source["ext/bench.rego"] = []byte(stricter)
	next, err := policies.New(source)
	if err != nil {
		return nil, err
	}
	var b audit.Backtest
	err = m.read(func(f *os.File) error {
		b, err = audit.BacktestBundle(ctx, f, audit.Trial{Today: today, New: next})
		return err
	})
	if err == nil && (b.Records < m.intents || b.Flipped == 0 || b.Unreplayable > 0) {
		err = fmt.Errorf("%d intents were made, %d tried, %d flip, %d cannot be tried: %v", m.intents, b.Records, b.Flipped, b.Unreplayable, b.Why)
	}
	return []Row{newRow("backtest / ed25519.Verify on all processors", b.PerSecond, bare, "decisions per second", b.Records)}, err
}
