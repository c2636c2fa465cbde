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
	t.fold.inputs = newContents(s.blob(ctx))
	pull, stop := iter.Pull2(s.Records.Scan(ctx, 0))
	defer stop()
	return t.run(ctx, func() (func() []*item, error) {
		batch := make([]storage.Record, 0, trialBatch)
		for len(batch) < cap(batch) {
			rec, err, more := pull()
			if err != nil {
				return nil, err
			}
			if !more {
				break
			}
			batch = append(batch, rec)
		}
		if len(batch) == 0 {
			return nil, nil
		}
		return func() []*item {
			items := make([]*item, len(batch))
			for i, rec := range batch {
				items[i] = ownItem(rec)
			}
			return items
		}, nil
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
	t := newTrial(first.Bundle.Origin, o)
	return t.run(ctx, func() (func() []*item, error) {
		b, more, err := l.batch()
		if err != nil || !more {
			return nil, err
		}
		return func() []*item { return t.open(b) }, nil
	})
}

// open takes a batch of lines apart, and keeps its blobs.
func (t *trial) open(b *batch) []*item {
	b.decode()
	items := make([]*item, 0, len(b.parsed))
	for _, p := range b.parsed {
		switch {
		case p.err != nil:
			items = append(items, &item{Record: storage.Record{Position: -1}, err: p.err})
		case p.Blob != nil:
			t.before.keep(p.Blob.Digest, p.Blob.Data)
		case p.item != nil:
			items = append(items, p.item)
		}
	}
	return items
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
