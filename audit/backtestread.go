package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// BacktestRecords tries a policy on the records of a data directory.
func BacktestRecords(ctx context.Context, s Source, o Trial) (Backtest, error) {
	t := newTrial(s.Origin, o)
	t.before.find = func(digest string) ([]byte, error) { return fetch(ctx, s.Blobs, digest) }
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

// ownItem takes a record of one's own journal apart; there is no leaf to hold it to.
func ownItem(rec storage.Record) *item {
	it := &item{position: rec.Position, at: rec.At, entry: &Entry{Position: rec.Position, Kind: rec.Kind, At: intents.FormatTime(rec.At), Parts: map[string]Part{}}}
	bodies := make(map[string][]byte, len(rec.Parts))
	for name, body := range rec.Parts {
		bodies[name], it.entry.Parts[name] = body, Part{}
	}
	for name, digest := range rec.Erased {
		it.withheld, it.entry.Parts[name] = true, Part{Digest: digest}
	}
	it.err = it.read(bodies)
	it.decidedAt()
	return it
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
		b, err := l.batch()
		if err != nil || b == nil {
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
			items = append(items, &item{position: -1, err: p.err})
		case p.Blob != nil:
			t.before.keep(p.Blob.Digest, p.Blob.Data)
		case p.item != nil:
			items = append(items, p.item)
		}
	}
	return items
}

// PolicyInForce is the tree that the last record rests on.
func PolicyInForce(ctx context.Context, s Source) (policies.Source, error) {
	for at := s.Records.Next() - 1; at >= 0; at-- {
		rec, err := s.Records.Get(ctx, at)
		if err != nil {
			return nil, err
		}
		digest, err := policyOf(rec)
		if err != nil {
			return nil, err
		}
		if digest != "" {
			r := newReplayer(nil)
			r.find = func(d string) ([]byte, error) { return fetch(ctx, s.Blobs, d) }
			return r.source(digest)
		}
	}
	return nil, errors.New("no record says which policy is in force")
}

// policyOf is the policy that is in force after a record, as far as that says so.
func policyOf(rec storage.Record) (string, error) {
	switch rec.Kind {
	case storage.KindControl:
		c, err := unmarshal[state.Control](rec.Parts[storage.PartControl])
		if err != nil {
			return "", err
		}
		if c.Genesis != nil {
			g, err := state.OpenGenesis(*c.Genesis)
			return g.Policy, err
		}
		return c.Policy, nil
	case storage.KindOrder:
		var d intents.Decision
		if err := json.Unmarshal(rec.Parts[storage.PartDecision], &d); err != nil {
			return "", err
		}
		if push := pushedDigest(rec, d); push != "" {
			return push, nil
		}
		return d.PolicyDigest, nil
	default:
		return "", nil
	}
}

// pushedDigest is the policy that an accepted policy.push puts in force.
func pushedDigest(rec storage.Record, d intents.Decision) string {
	var sealed intents.Sealed
	var body intents.Body
	var push struct {
		Digest string `json:"digest"`
	}
	if d.Verdict != intents.Allow || json.Unmarshal(rec.Parts[storage.PartOrder], &sealed) != nil ||
		json.Unmarshal([]byte(sealed.Payload), &body) != nil || body.Intent.Type != state.TypePolicyPush ||
		json.Unmarshal(body.Intent.Args, &push) != nil {
		return ""
	}
	return push.Digest
}
