package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// Health is what a check of a data directory found; scripts rely on it.
type Health struct {
	OK       bool  `json:"ok"`
	Records  int64 `json:"records"`
	Leaves   int64 `json:"leaves"` // of the published checkpoint
	Pending  int64 `json:"pending"`
	Blobs    int64 `json:"blobs"`     // that records rest on, each once
	FirstBad *Bad  `json:"first_bad"` // position -1: no record, but the directory
	// Projections are documents that were made again and compared; Behind are those
	// that the recorder has still to write. Not compared while a process uses the
	// directory.
	Compared    bool    `json:"compared"`
	Projections int64   `json:"projections"`
	Behind      int64   `json:"behind"`
	Seconds     float64 `json:"seconds"`

	// SetAside are positions of records of which something cannot be projected: documents lack
	// it, and the record is sound.
	SetAside []int64 `json:"set_aside,omitempty"`

	ClockSteps int64 `json:"clock_steps,omitempty"` // see Report
	// UnprovenKeys are idempotency keys that no part tells any more: of orders that
	// were erased before their records held them.
	UnprovenKeys int64 `json:"unproven_keys,omitempty"`
}

// Fsck reads a whole data directory and names the first thing that is wrong:
// the journal (positions without gaps, records that can be read, outcomes of
// orders that were open), the ledger (every leaf its record's, tiles and root by
// Tessera's own judge), and the blobs that records rest on. It writes nothing. The
// error is the context's or the reader's; what is wrong is no error. progress,
// if not nil, is called with the number of records read and of all.
func Fsck(ctx context.Context, s Source, keys []intents.Key, progress func(done, total int64)) (Health, error) {
	x := &checker{Source: s, tenants: ledger.NewTenants(s.Records), fold: newFold(), seen: map[string]bool{}, named: map[int64]naming{}, progress: progress}
	x.fold.origin, x.fold.content = s.Origin, func(digest string) ([]byte, error) { return fetch(ctx, s.Blobs, digest) }
	bad := x.run(ctx, keys)
	if err := ctx.Err(); err != nil {
		return x.found, err
	}
	if bad != nil {
		var at *Bad
		if !errors.As(bad, &at) {
			at = &Bad{-1, "", bad.Error()}
		}
		x.found.FirstBad = at
	}
	x.found.OK, x.found.ClockSteps = bad == nil, x.fold.steps
	return x.found, nil
}

type checker struct {
	Source
	tenants  *ledger.Tenants
	fold     *fold
	judge    *ledger.Judge
	seen     map[string]bool  // blobs, by tenant and digest
	named    map[int64]naming // by open orders, by position
	gone     []*Bad           // records that rest on a blob which is not there
	found    Health
	progress func(done, total int64)
}

// naming are the blobs that an order names as its inputs.
type naming struct {
	id   string
	refs []string
}

func (x *checker) run(ctx context.Context, keys []intents.Key) error {
	c, err := x.Ledger.Fsck(ctx, keys...)
	if err != nil {
		return err
	}
	x.found.Leaves, x.judge = c.Size, x.Ledger.Judge(c)
	if next := x.Records.Next(); c.Size > next {
		return fmt.Errorf("the ledger has %d leaves, the journal %d records: the journal was put back from an older copy", c.Size, next)
	}
	next := int64(0)
	for rec, err := range x.Records.Scan(ctx, 0) {
		if err != nil {
			return &Bad{next, "", err.Error()}
		}
		if rec.Position != next {
			return &Bad{next, "", fmt.Sprintf("the journal has no record here; the next one is %d", rec.Position)}
		}
		next++
		if err := x.record(ctx, rec, c.Size); err != nil {
			return &Bad{rec.Position, "", err.Error()}
		}
		x.found.Records = next
		if x.progress != nil && next%1000 == 0 {
			x.progress(next, x.Records.Next())
		}
	}
	if err := x.lost(); err != nil {
		return err
	}
	if next != x.Records.Next() {
		return &Bad{next, "", fmt.Sprintf("the journal ends here, and should have %d records", x.Records.Next())}
	}
	x.found.Pending = next - c.Size
	return nil
}

// record holds one to its leaf, to the records before it, and to its blobs.
func (x *checker) record(ctx context.Context, rec storage.Record, size int64) error {
	for name := range rec.Parts {
		if len(rec.Salts[name]) != hashSize {
			return fmt.Errorf("part %q has no salt of 32 bytes", name)
		}
	}
	it := ownItem(rec)
	tenant, err := x.tenant(ctx, it)
	if err != nil {
		return err
	}
	if rec.Position < size {
		if err := x.leaf(ctx, rec, tenant); err != nil {
			return err
		}
	}
	if it.err != nil {
		return it.err
	}
	j, err := x.fold.take(it)
	if err = cmp.Or(err, j.unfit); err != nil {
		return err
	}
	return x.restsOn(ctx, it, tenant)
}

// tenant of a record. An order that was read is not read for this once more.
func (x *checker) tenant(ctx context.Context, it *item) (string, error) {
	if it.order == nil || it.err != nil {
		return x.tenants.Of(ctx, it.Record)
	}
	tenant := strings.Clone(it.order.body.Actor.Tenant)
	x.tenants.Note(it.Position, tenant)
	return tenant, nil
}

func (x *checker) leaf(ctx context.Context, rec storage.Record, tenant string) error {
	leaf, err := x.judge.Leaf(ctx, rec.Position)
	if err != nil {
		return err
	}
	tag, err := x.Tags.Tag(tenant)
	if err != nil {
		return err
	}
	if !bytes.Equal(ledger.NewLeaf(rec, tag).Bytes(), leaf) {
		return errors.New("its leaf in the ledger is not the commitment to it: the record was changed, or belongs to another log")
	}
	return nil
}

// restsOn looks for the blobs that a record rests on: what decided, what people were asked
// about, and what an order that is done took as its input. One that is only named holds
// nothing: it may be gone, or never have been there, which its order was told.
func (x *checker) restsOn(ctx context.Context, it *item, tenant string) error {
	policy, types := it.versions()
	if err := errors.Join(x.versions(ctx, policy, types), x.listed(ctx, it.registry())); err != nil {
		return err
	}
	switch o := it.order; {
	case it.outcome != nil:
		named := x.named[it.of]
		delete(x.named, it.of)
		if it.outcome.Status != intents.Done {
			return nil
		}
		return x.there(ctx, it.of, named.id, tenant, named.refs)
	case o == nil || o.decision.Verdict == intents.Deny:
		return nil // it may name anything
	case o.decision.Verdict == intents.Hold:
		var kept []string
		for _, in := range o.facts.Inputs {
			kept = append(kept, in.Ref)
		}
		return x.there(ctx, it.Position, o.id(), tenant, kept)
	default:
		row, _ := catalog.Builtin().Lookup(o.body.Intent.Type)
		inputs, _ := catalog.InputsOf(row, o.body.Intent.Args) // of arguments that were erased: none
		n := naming{id: o.id()}
		for _, in := range inputs {
			if strings.HasPrefix(in.Ref, "cas://") {
				n.refs = append(n.refs, in.Ref)
			}
		}
		if len(n.refs) > 0 {
			x.named[it.Position] = n
		}
		return nil
	}
}

// there looks for the blobs among some references of an order.
func (x *checker) there(ctx context.Context, position int64, id, tenant string, refs []string) error {
	for _, ref := range refs {
		digest, is := strings.CutPrefix(ref, "cas://")
		if !is || !intents.IsDigest(digest) {
			continue
		}
		_, err := x.blob(ctx, tenant, digest)
		if errors.Is(err, storage.ErrNotFound) {
			x.gone = append(x.gone, &Bad{position, id, err.Error()})
		} else if err != nil {
			return err
		}
	}
	return nil
}

// lost is the first record that lacks a part or a blob which no record.erase in
// the journal took away.
func (x *checker) lost() error {
	var bad *Bad
	for _, m := range x.fold.unexplained() {
		if b := (&Bad{m.position, m.intentID, m.reason()}); b.before(bad) {
			bad = b
		}
	}
	for _, b := range x.gone {
		if !x.fold.blobs[b.Position] && b.before(bad) {
			bad = b
		}
	}
	if bad == nil {
		return nil
	}
	return bad
}

// versions that decided: a policy with all files of its list, and a catalog.
func (x *checker) versions(ctx context.Context, policy, types string) error {
	if _, err := x.blob(ctx, ledger.SystemTenant, types); err != nil {
		return err
	}
	return x.listed(ctx, policy)
}

// listed are the files of a policy or a registry.
func (x *checker) listed(ctx context.Context, digest string) error {
	list, err := x.blob(ctx, ledger.SystemTenant, digest)
	if err != nil || list == nil {
		return err
	}
	var files map[string]string
	if err := json.Unmarshal(list, &files); err != nil {
		return fmt.Errorf("blob %s is no list of files", digest)
	}
	for _, file := range files {
		if _, err := x.blob(ctx, ledger.SystemTenant, file); err != nil {
			return err
		}
	}
	return nil
}

// blob must be there and be what its digest says. One that was looked at before
// is nil.
func (x *checker) blob(ctx context.Context, tenant, digest string) ([]byte, error) {
	key := tenant + "/" + digest
	if digest == "" || x.seen[key] {
		return nil, nil
	}
	f, _, err := x.Blobs.Fetch(ctx, tenant, "cas://"+digest)
	if err != nil {
		return nil, fmt.Errorf("blob %s of %s: %w", digest, tenant, err)
	}
	x.seen[key] = true
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("blob %s of %s: %w", digest, tenant, err)
	}
	if intents.Digest(data) != digest {
		return nil, fmt.Errorf("blob %s of %s is not what its digest says", digest, tenant)
	}
	x.found.Blobs++
	return data, nil
}
