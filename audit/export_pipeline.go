package audit

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// piece is a record on its way into a bundle.
type piece struct {
	*item
	digest string

	// What the order of records decides.
	tag     string
	whole   bool   // the record is in the bundle
	bare    bool   // its leaf is
	before  []line // blobs that the record needs
	rests   bool   // later records rest on it
	issue   bool   // a receipt
	receipt intents.Receipt
	key     intents.Signer

	withheld bool
	raw      []byte // its lines
	n        int64  // how many
}

// records reads and writes records in order. Workers decode them and make their lines.
func (x *exporter) records(ctx context.Context) error {
	pull, stop := iter.Pull2(x.Records.Scan(ctx, 0))
	defer stop()
	return stages[[]piece]{
		workers: runtime.GOMAXPROCS(0),
		next:    func() ([]piece, bool, error) { return x.load(pull) },
		apart: func(pieces []piece) {
			for i := range pieces {
				p := &pieces[i]
				p.item, p.digest = ownItem(p.Record), p.Digest()
			}
		},
		fold: func(pieces []piece) (func(), error) {
			prover := x.Ledger.Prover(x.last.Size)
			return func() {
				for i := range pieces {
					pieces[i].err = pieces[i].write(ctx, x.sel, prover)
				}
			}, x.sort(ctx, pieces)
		},
		done: x.ship,
	}.run(ctx)
}

// load reads the next records; none at the end of the last checkpoint.
func (x *exporter) load(pull func() (storage.Record, error, bool)) (pieces []piece, more bool, err error) {
	for size := 0; len(pieces) < batchLines && size < batchBytes; {
		rec, err, more := pull()
		if err != nil {
			return nil, false, err
		}
		if !more || rec.Position >= x.last.Size {
			break
		}
		pieces = append(pieces, piece{item: &item{Record: rec}})
		for _, part := range rec.Parts {
			size += len(part)
		}
	}
	return pieces, len(pieces) > 0, nil
}

// sort decides in order what belongs into the bundle.
func (x *exporter) sort(ctx context.Context, pieces []piece) error {
	for i := range pieces {
		p := &pieces[i]
		err := p.err
		if err == nil {
			err = x.choose(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", p.Position, err)
		}
	}
	return nil
}

func (x *exporter) choose(ctx context.Context, p *piece) error {
	tenant, err := x.tenant(ctx, p.item)
	if err != nil {
		return err
	}
	if p.tag, err = x.Tags.Tag(tenant); err != nil {
		return err
	}
	x.take(p.item, p.digest)
	mine := x.sel.Tenant == "" || tenant == x.sel.Tenant
	p.rests = p.restsOn(x.sel.Tenant)
	p.rests = x.ofHeld(p.item, x.sel.Tenant) || p.rests // asked of every record: it remembers
	p.whole = p.rests || (mine && (p.Position >= x.from || x.earlier[p.Position]))
	p.bare = !p.whole && x.sel.Complete && x.from == 0
	if p.outcome != nil {
		if p.receipt, p.key, p.issue, err = x.receipt(ctx, p.item, p.digest); err != nil {
			return err
		}
	}
	if !p.whole {
		return nil
	}
	x.account(p.item)
	policy, types := p.versions()
	for _, digest := range []string{policy, types, p.registry()} {
		lines, err := x.blob(ctx, digest)
		if err != nil {
			return err
		}
		p.before = append(p.before, lines...)
	}
	return nil
}

// write makes the lines of a record, on a worker.
func (p *piece) write(ctx context.Context, sel Selection, prover *ledger.Prover) error {
	if !p.whole && !p.bare {
		return nil
	}
	proof, err := prover.Inclusion(ctx, p.Position)
	if err != nil {
		return fmt.Errorf("record %d: %w", p.Position, err)
	}
	if p.bare {
		return p.add(line{Leaf: &Bare{Leaf: string(ledger.NewLeaf(p.Record, p.tag).Bytes()), Proof: join(proof)}})
	}
	for _, l := range p.before {
		if err := p.add(l); err != nil {
			return err
		}
	}
	rec := p.Record
	if sel.Masked && !p.rests && p.order != nil && masks(p.order.decision) {
		rec, _ = rec.Without(storage.PartOrder)
	}
	p.withheld = len(rec.Erased) > 0
	e := newEntry(rec, p.tag, proof)
	if p.issue {
		if e.Receipt, err = intents.IssueReceipt(p.key, p.receipt); err != nil {
			return err
		}
	}
	return p.add(line{Record: e})
}

func (p *piece) add(l line) error {
	raw, err := l.encode()
	p.raw = append(slices.Grow(p.raw, len(raw)), raw...)
	p.n++
	return err
}

// ship writes the lines of records, and counts them.
func (x *exporter) ship(pieces []piece) error {
	for i := range pieces {
		p := &pieces[i]
		if p.err != nil {
			return p.err
		}
		switch {
		case p.whole:
			x.done.Records++
		case p.bare:
			x.done.Leaves++
		}
		if p.withheld {
			x.done.Withheld++
		}
		if err := x.put(p.raw, p.n); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) write(l line) error {
	raw, err := l.encode()
	if err != nil {
		return err
	}
	return x.put(raw, 1)
}

// put writes lines.
func (x *exporter) put(raw []byte, lines int64) error {
	x.sum.Write(raw) // never fails
	x.lines += lines
	x.done.Bytes += int64(len(raw))
	_, err := x.out.Write(raw)
	return err
}

// end writes the last line.
func (x *exporter) end() error {
	if err := x.accounted(); err != nil {
		return err
	}
	return x.write(line{End: &End{Lines: x.lines, SHA256: hex.EncodeToString(x.sum.Sum(nil))}})
}
