package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// piece is a record on its way into a bundle.
type piece struct {
	*item
	tag    string
	whole  bool   // the record is in the bundle
	bare   bool   // its leaf is
	before []line // blobs that the record needs
	rests  bool   // later records rest on it
}

// records reads and writes records in order, to the end of the last checkpoint.
func (x *exporter) records(ctx context.Context) error {
	for rec, err := range x.Records.Scan(ctx, 0) {
		if err == nil && rec.Position >= x.last.Size {
			return nil
		}
		if err == nil {
			err = x.record(ctx, rec)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) record(ctx context.Context, rec storage.Record) error {
	p := &piece{item: ownItem(rec)}
	err := p.err
	if err == nil {
		err = x.choose(ctx, p)
	}
	if err == nil && (p.whole || p.bare) {
		err = x.ship(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", rec.Position, err)
	}
	return nil
}

// choose decides what of a record belongs into the bundle.
func (x *exporter) choose(ctx context.Context, p *piece) error {
	tenant, err := p.tenant(ctx, x.tenants)
	if err != nil {
		return err
	}
	if p.tag, err = x.Tags.Tag(tenant); err != nil {
		return err
	}
	mine := x.sel.Tenant == "" || tenant == x.sel.Tenant
	p.rests = p.restsOn(x.sel.Tenant)
	p.rests = x.ofHeld(p.item, x.sel.Tenant) || p.rests // called for every record: it has memory
	p.whole = p.rests || (mine && (p.Position >= x.from || x.earlier[p.Position]))
	p.bare = !p.whole && x.sel.Complete && x.from == 0
	if !p.whole {
		return nil
	}
	if err := x.account(ctx, p.item); err != nil {
		return err
	}
	policy, types := p.versions()
	for _, digest := range []string{policy, types, p.registry()} {
		lines, err := x.blob(ctx, digest)
		if err != nil {
			return err
		}
		p.before = append(p.before, lines...)
	}
	return x.addInputs(ctx, p, tenant)
}

// addInputs adds the blobs that an intent uses and that policies saw. What was erased since is left
// out, and decisions on it cannot be replayed where the policy reads it.
func (x *exporter) addInputs(ctx context.Context, p *piece, tenant string) error {
	if p.intent == nil || p.intent.hidden() || x.sel.Masked && p.intent.decision.Masks() {
		return nil
	}
	for _, in := range p.intent.inputs.Inputs {
		if !strings.HasPrefix(in.Ref, "cas://") || in.Size >= policies.MaxInputSize || x.blobs[in.SHA256] {
			continue
		}
		x.blobs[in.SHA256] = true
		data, err := x.Source.blob(ctx)(tenant, in.SHA256)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		p.before = append(p.before, line{Blob: &Blob{Digest: in.SHA256, Data: data}})
	}
	return nil
}

// ship writes the lines of a record, and counts them.
func (x *exporter) ship(ctx context.Context, p *piece) error {
	for _, l := range p.before {
		if err := x.write(l); err != nil {
			return err
		}
	}
	if err := x.tile(ctx, p.Position/ledger.TileWidth); err != nil {
		return err
	}
	if p.bare {
		x.done.Leaves++
		leaf := ledger.NewLeaf(p.Record, p.tag)
		return x.write(line{Leaf: &leaf})
	}
	rec := p.Record
	if x.sel.Masked && !p.rests && p.intent != nil && p.intent.decision.Masks() {
		rec, _ = rec.Without(storage.PartEnvelope, storage.PartTransient)
	}
	x.done.Records++
	if len(rec.Erased) > 0 {
		x.done.Withheld++
	}
	return x.write(line{Record: newEntry(rec, p.tag)})
}

// tile writes a tile before the first of its records and leaves.
func (x *exporter) tile(ctx context.Context, index int64) error {
	if index < x.tiles {
		return nil
	}
	x.tiles = index + 1
	hashes, around, err := x.prover.Tile(ctx, index)
	if err != nil {
		return err
	}
	return x.write(line{Tile: &Tile{Around: around, Hashes: hashes, Index: index}})
}

// write writes a line.
func (x *exporter) write(l line) error {
	raw, err := l.encode()
	if err != nil {
		return err
	}
	x.sum.Write(raw) // never fails
	x.lines++
	x.done.Bytes += int64(len(raw))
	_, err = x.out.Write(raw)
	return err
}

// end writes the last line.
func (x *exporter) end(ctx context.Context) error {
	if err := x.accounted(ctx); err != nil {
		return err
	}
	return x.write(line{End: &End{Lines: x.lines, SHA256: hex.EncodeToString(x.sum.Sum(nil))}})
}
