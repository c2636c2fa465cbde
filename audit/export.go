package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// Source is where a bundle comes from: the data directory of whoever runs the log.
type Source struct {
	Origin  string
	Records storage.Records
	Ledger  *ledger.Reader
	Blobs   storage.Blobs
	Tags    ledger.Tags
	// Keys of the log: LedgerKey signs the first checkpoint, RouterKey receipts.
	LedgerKey, RouterKey intents.Signer
}

// Selection says what a bundle is about. The zero value is the whole log.
type Selection struct {
	Tenant   string    // empty: all
	Since    time.Time // records from then on; zero: all
	Complete bool      // with Tenant: leaves of all other records, and the tenant's tag key
	// Checkpoint that the auditor has: the bundle shows that the log has only
	// grown since. Empty: the log as it was at the first record.
	Checkpoint string
}

// Exported says what an export wrote.
type Exported struct {
	Records int64 `json:"records"`
	Leaves  int64 `json:"leaves"` // without their records
	Size    int64 `json:"size"`   // leaves of the last checkpoint
	// Pending records are durable, but in no checkpoint yet: they are not in the bundle.
	Pending int64 `json:"pending"`
	Bytes   int64 `json:"bytes"`
}

// Export streams a bundle. Memory is bounded by what one batch of proofs needs
// and by which tenants' orders are open. The error leaves a part of a bundle,
// which verifies as cut short.
func Export(ctx context.Context, w io.Writer, s Source, sel Selection) (Exported, error) {
	x := &exporter{Source: s, sel: sel, out: w, sum: sha256.New(), tenants: ledger.NewTenants(s.Records), blobs: map[string]bool{}, earlier: map[int64]bool{}}
	err := x.run(ctx)
	return x.done, err
}

type exporter struct {
	Source
	sel     Selection
	out     io.Writer
	sum     hash.Hash
	lines   int64
	done    Exported
	tenants *ledger.Tenants
	blobs   map[string]bool // that are in the bundle
	earlier map[int64]bool  // orders before the first record that later records are about
	from    int64
	last    ledger.Checkpoint
	prover  *ledger.Prover
	proved  int64           // positions by this prover
	keys    map[string]bool // that are in force
	token   string          // the key set in force
}

// proverSpan is how many proofs one prover makes: it keeps every tile it has read.
const proverSpan = 1 << 16

func (x *exporter) run(ctx context.Context) error {
	var err error
	if x.last, err = x.Ledger.Checkpoint(ctx, x.LedgerKey.VerificationKey()); err != nil {
		return err
	}
	x.done.Size, x.done.Pending = x.last.Size, x.Records.Next()-x.last.Size
	if err := x.begin(ctx); err != nil {
		return err
	}
	if err := x.header(ctx); err != nil {
		return err
	}
	for rec, err := range x.Records.Scan(ctx, 0) {
		if err != nil {
			return err
		}
		if rec.Position >= x.last.Size {
			break
		}
		if err := x.record(ctx, rec); err != nil {
			return fmt.Errorf("record %d: %w", rec.Position, err)
		}
	}
	end := End{Lines: x.lines, SHA256: hex.EncodeToString(x.sum.Sum(nil))}
	return x.write(line{End: &end})
}

// begin finds the first record and, of what is before it, the orders that later
// records are about.
func (x *exporter) begin(ctx context.Context) error {
	if x.sel.Since.IsZero() {
		return nil
	}
	x.from = x.last.Size
	for rec, err := range x.Records.Scan(ctx, 0) {
		if err != nil {
			return err
		}
		if rec.Position < x.from && rec.Position < x.last.Size && !rec.At.Before(x.sel.Since) {
			x.from = rec.Position
		}
		if rec.Position >= x.from && (rec.Kind == storage.KindOutcome || rec.Kind == storage.KindRelease || rec.Kind == storage.KindTakeover) {
			of, err := ledger.About(rec)
			if err != nil {
				return err
			}
			if of < x.from {
				x.earlier[of] = true
			}
		}
	}
	return nil
}

func (x *exporter) header(ctx context.Context) error {
	h := Header{V: Version, Origin: x.Origin, Size: x.last.Size, From: x.from, Tenant: x.sel.Tenant, Last: x.last.Note, Consistency: [][]byte{}}
	h.Complete = x.from == 0 && (x.sel.Tenant == "" || x.sel.Complete)
	var err error
	if x.sel.Tenant != "" && x.sel.Complete {
		if h.TagKey, err = x.Tags.Key(x.sel.Tenant); err != nil {
			return err
		}
	}
	first, err := x.first(ctx)
	if err != nil {
		return err
	}
	h.First = first.Note
	p, err := x.Ledger.Prover(ctx, x.last.Size)
	if err != nil {
		return err
	}
	hashes, err := p.Consistency(ctx, first.Size)
	if err != nil {
		return err
	}
	if hashes != nil {
		h.Consistency = hashes
	}
	return x.write(line{Bundle: &h})
}

// first is the checkpoint that the log is shown to continue.
func (x *exporter) first(ctx context.Context) (ledger.Checkpoint, error) {
	if x.sel.Checkpoint == "" {
		return x.Ledger.CheckpointAt(ctx, min(max(x.from, 1), x.last.Size), x.LedgerKey)
	}
	c, err := ledger.ReadCheckpoint(x.sel.Checkpoint)
	switch {
	case err != nil:
		return c, err
	case c.Origin != x.Origin:
		return c, errors.New("the checkpoint is another log's")
	case c.Size > x.last.Size:
		return c, fmt.Errorf("the checkpoint has %d records, the log %d: the log has lost some", c.Size, x.last.Size)
	}
	return c, nil
}

// record writes what the bundle has of a record.
func (x *exporter) record(ctx context.Context, rec storage.Record) error {
	tenant, err := x.tenants.Of(ctx, rec)
	if err != nil {
		return err
	}
	tag, err := x.Tags.Tag(tenant)
	if err != nil {
		return err
	}
	versions, restsOn, err := x.reads(rec)
	if err != nil {
		return err
	}
	mine := x.sel.Tenant == "" || tenant == x.sel.Tenant
	wanted := rec.Kind == storage.KindControl || restsOn || (mine && (rec.Position >= x.from || x.earlier[rec.Position]))
	if !wanted && !(x.sel.Complete && x.from == 0) {
		return nil
	}
	proof, err := x.proof(ctx, rec.Position)
	if err != nil {
		return err
	}
	if !wanted {
		x.done.Leaves++
		return x.write(line{Leaf: &Bare{Leaf: string(ledger.NewLeaf(rec, tag).Bytes()), Proof: join(proof)}})
	}
	for _, digest := range versions {
		if err := x.blob(ctx, digest); err != nil {
			return err
		}
	}
	e := newEntry(rec, tag, proof)
	if rec.Kind == storage.KindOutcome {
		if e.Receipt, err = x.receipt(ctx, rec); err != nil {
			return err
		}
	}
	x.done.Records++
	return x.write(line{Record: e})
}

func (x *exporter) proof(ctx context.Context, position int64) (hashes [][]byte, err error) {
	if x.prover == nil || x.proved == proverSpan {
		x.proved = 0
		if x.prover, err = x.Ledger.Prover(ctx, x.last.Size); err != nil {
			return nil, err
		}
	}
	x.proved++
	return x.prover.Inclusion(ctx, position)
}

// reads says which policies and catalogs a record brings into the bundle, and
// whether later records rest on it whosever they are: keys and directory of
// system and of the tenant, and the tenant's plans and steps.
func (x *exporter) reads(rec storage.Record) (versions []string, restsOn bool, err error) {
	switch rec.Kind {
	case storage.KindControl:
		var c control
		if err := json.Unmarshal(rec.Parts[storage.PartControl], &c); err != nil {
			return nil, false, err
		}
		if c.Genesis != nil {
			g, _, err := openGenesis(*c.Genesis)
			if err != nil {
				return nil, false, err
			}
			x.know(g.KeySet)
			return []string{g.Policy, g.Catalog}, true, nil
		}
		return []string{c.Policy, c.Catalog}, true, nil
	case storage.KindOrder:
		var sealed intents.Sealed
		var body intents.Body
		var d intents.Decision
		if err := errors.Join(json.Unmarshal(rec.Parts[storage.PartOrder], &sealed), json.Unmarshal(rec.Parts[storage.PartDecision], &d)); err != nil {
			return nil, false, err
		}
		if err := json.Unmarshal([]byte(sealed.Payload), &body); err != nil {
			return nil, false, err
		}
		return []string{d.PolicyDigest, d.Catalog}, x.restsOn(body, d), nil
	default:
		return nil, false, nil
	}
}

func (x *exporter) restsOn(body intents.Body, d intents.Decision) bool {
	if d.Verdict != intents.Allow || d.Executor != catalog.ExecutorRouter {
		return false
	}
	actor, of := body.Actor.Tenant, x.sel.Tenant
	switch body.Intent.Type {
	case "key.put":
		var a catalog.KeyPut
		if json.Unmarshal(body.Intent.Args, &a) == nil {
			x.know(a.KeySet)
		}
		return true
	case "admin.put", "skill.approve", "grant.revoke":
		var a struct {
			Tenant string          `json:"tenant"`
			New    *catalog.Tenant `json:"new_tenant"`
		}
		if json.Unmarshal(body.Intent.Args, &a) != nil {
			return true
		}
		on := named(actor, a.Tenant)
		if a.New != nil {
			on = a.New.ID
		}
		return of == "" || on == of || on == ledger.SystemTenant
	default:
		return of == "" || actor == of
	}
}

// know remembers which keys are in force, for receipts.
func (x *exporter) know(token string) {
	var s intents.KeySet
	if intents.PeekClaims(token, &s) != nil {
		return
	}
	x.keys, x.token = map[string]bool{}, token
	for _, k := range s.Keys {
		x.keys[k.KID] = !k.Revoked
	}
}

// receipt of the order that an outcome ends: what the router told its submitter,
// a pure function of the two records. None where the router's key is not the
// one that was in force.
func (x *exporter) receipt(ctx context.Context, rec storage.Record) (string, error) {
	if !x.keys[x.RouterKey.KID] {
		return "", nil
	}
	of, err := ledger.About(rec)
	if err != nil {
		return "", err
	}
	order, err := x.Records.Get(ctx, of)
	if err != nil {
		return "", err
	}
	var d intents.Decision
	var out intents.Outcome
	if err := errors.Join(json.Unmarshal(order.Parts[storage.PartDecision], &d), json.Unmarshal(rec.Parts[storage.PartOutcome], &out)); err != nil {
		return "", err
	}
	return intents.IssueReceipt(x.RouterKey, intents.Receipt{
		Issuer: x.Origin, IntentID: d.IntentID, Position: of, Code: out.Code,
		PolicyDigest: d.PolicyDigest, RecordDigest: order.Digest(), OutcomeDigest: rec.Digest(), WithinSec: intents.PromiseSeconds,
	})
}

// blob writes something that decided, once. What was not kept is left out, and
// what it decided cannot be replayed.
func (x *exporter) blob(ctx context.Context, digest string) error {
	if digest == "" || x.blobs[digest] {
		return nil
	}
	x.blobs[digest] = true
	data, err := fetch(ctx, x.Blobs, digest)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var files map[string]string // the file list of a policy names its files
	if json.Unmarshal(data, &files) == nil {
		for _, file := range files {
			if err := x.blob(ctx, file); err != nil {
				return err
			}
		}
	}
	return x.write(line{Blob: &Blob{Digest: digest, Data: data}})
}

// fetch reads a blob of tenant system by digest.
func fetch(ctx context.Context, blobs storage.Blobs, digest string) ([]byte, error) {
	f, _, err := blobs.Fetch(ctx, ledger.SystemTenant, "cas://"+digest)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

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
