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
	content
	err error // of the record; it ends the export

	// What the order of records decides.
	tag      string
	whole    bool   // the record is in the bundle
	bare     bool   // its leaf is
	before   []line // blobs that the record needs
	rests    bool   // later records rest on it
	issue    bool   // a receipt
	receipt  intents.Receipt
	key      intents.Signer
	withheld bool

	raw []byte // its lines
	n   int64  // how many
}

// shipment is some records on their way together.
type shipment struct {
	pieces []piece
	ready  chan struct{} // closed by a worker; made anew for the next one
}

func (s *shipment) on(slots chan struct{}, fn func(*piece)) {
	ready := make(chan struct{})
	s.ready = ready
	work(slots, func() {
		defer close(ready)
		for i := range s.pieces {
			if p := &s.pieces[i]; p.err == nil {
				fn(p)
			}
		}
	})
}

// records takes the journal through a pipeline: records are read and written in
// order by one goroutine, which decides in between what of them belongs into the
// bundle; they are taken apart, and their lines made, by workers.
func (x *exporter) records(ctx context.Context) error {
	workers := runtime.GOMAXPROCS(0)
	slots := make(chan struct{}, workers)
	defer func() {
		for range cap(slots) { // wait for the workers
			slots <- struct{}{}
		}
	}()
	pull, stop := iter.Pull2(x.Records.Scan(ctx, 0))
	defer stop()
	var apart, lines []*shipment
	for more := true; more || len(apart)+len(lines) > 0; {
		for more && len(apart) <= workers {
			s, err := x.load(pull)
			if err != nil {
				return err
			}
			if more = len(s.pieces) > 0; more {
				s.on(slots, (*piece).read)
				apart = append(apart, s)
			}
		}
		if len(apart) > 0 {
			s := apart[0]
			apart = apart[1:]
			<-s.ready
			if err := x.sort(ctx, s); err != nil {
				return err
			}
			prover := x.Ledger.Prover(x.last.Size)
			s.on(slots, func(p *piece) { p.err = p.write(ctx, x.sel, prover) })
			lines = append(lines, s)
		}
		for len(lines) > workers || len(apart) == 0 && len(lines) > 0 {
			s := lines[0]
			lines = lines[1:]
			<-s.ready
			if err := x.ship(s); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// load reads the next records; none at the end of the last checkpoint.
func (x *exporter) load(pull func() (storage.Record, error, bool)) (*shipment, error) {
	s := &shipment{}
	for size := 0; len(s.pieces) < batchLines && size < batchBytes; {
		rec, err, more := pull()
		if err != nil {
			return nil, err
		}
		if !more || rec.Position >= x.last.Size {
			break
		}
		s.pieces = append(s.pieces, piece{content: content{rec: rec}})
		for _, part := range rec.Parts {
			size += len(part)
		}
	}
	return s, nil
}

func (p *piece) read() { p.content, p.err = readContent(p.rec) }

// sort decides in order what belongs into the bundle.
func (x *exporter) sort(ctx context.Context, s *shipment) error {
	for i := range s.pieces {
		p := &s.pieces[i]
		err := p.err
		if err == nil {
			err = x.choose(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", p.rec.Position, err)
		}
	}
	return nil
}

func (x *exporter) choose(ctx context.Context, p *piece) error {
	rec := p.rec
	tenant, err := x.tenant(ctx, &p.content)
	if err != nil {
		return err
	}
	if p.tag, err = x.Tags.Tag(tenant); err != nil {
		return err
	}
	x.take(&p.content)
	mine := x.sel.Tenant == "" || tenant == x.sel.Tenant
	p.rests = p.restsOn(x.sel.Tenant)
	p.rests = x.ofHeld(&p.content, x.sel.Tenant) || p.rests // asked of every record: it remembers
	p.whole = p.rests || (mine && (rec.Position >= x.from || x.earlier[rec.Position]))
	p.bare = !p.whole && x.sel.Complete && x.from == 0
	if rec.Kind == storage.KindOutcome {
		if p.receipt, p.key, p.issue, err = x.receipt(ctx, &p.content); err != nil {
			return err
		}
	}
	if !p.whole {
		return nil
	}
	x.account(&p.content)
	for _, digest := range p.versions {
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
	proof, err := prover.Inclusion(ctx, p.rec.Position)
	if err != nil {
		return fmt.Errorf("record %d: %w", p.rec.Position, err)
	}
	if p.bare {
		return p.add(line{Leaf: &Bare{Leaf: string(ledger.NewLeaf(p.rec, p.tag).Bytes()), Proof: join(proof)}})
	}
	for _, l := range p.before {
		if err := p.add(l); err != nil {
			return err
		}
	}
	e := newEntry(p.rec, p.tag, proof)
	if sel.Masked && !p.rests && masked(p.rec) {
		e.withhold(p.rec, storage.PartOrder)
		p.withheld = true
	}
	p.withheld = p.withheld || len(p.rec.Erased) > 0
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
func (x *exporter) ship(s *shipment) error {
	for i := range s.pieces {
		p := &s.pieces[i]
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
