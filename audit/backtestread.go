package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// BacktestRecords tries a policy on the records of a data directory.
func BacktestRecords(ctx context.Context, s Source, o Trial) (Backtest, error) {
	t := newTrial(s.Origin, o)
	t.before.find = func(digest string) ([]byte, error) { return fetch(ctx, s.Blobs, digest) }
	t.applier.inputs = newContents(s.blob(ctx))
	pull, stop := iter.Pull2(s.Records.Scan(ctx, 0))
	defer stop()
	return t.run(ctx, func() (*batch, bool, error) {
		b := &batch{records: make([]storage.Record, 0, batchLines)}
		for len(b.records) < batchLines {
			rec, err, more := pull()
			if err != nil || !more {
				return b, len(b.records) > 0, err
			}
			b.records = append(b.records, rec)
		}
		return b, true, nil
	})
}

// BacktestBundle tries a policy on a bundle. It believes the bundle: verify it first.
func BacktestBundle(ctx context.Context, r io.Reader, o Trial) (Backtest, error) {
	l := newLines(r)
	raw, err := l.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return Backtest{}, err
	}
	first, err := decodeLine(raw)
	if err != nil || first.Bundle == nil {
		return Backtest{}, fmt.Errorf("%w: it does not begin with a bundle's header", ErrMalformed)
	}
	return newTrial(first.Bundle.Origin, o).run(ctx, l.batch)
}

// PolicyInForce is the tree that decides after the last record.
func PolicyInForce(ctx context.Context, s Source) (policies.Source, error) {
	all := state.New()
	for rec, err := range s.Records.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		all.Observe(state.EntryOf(rec))
	}
	if err := all.Err(); err != nil {
		return nil, err
	}
	r := newReplayer(nil)
	r.find = func(d string) ([]byte, error) { return fetch(ctx, s.Blobs, d) }
	return r.source(all.View().PolicyDigest())
}
