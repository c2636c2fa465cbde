package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// Source is where a bundle comes from: the data directory of the log's operator.
type Source struct {
	Origin  string
	Records storage.Records
	Ledger  *ledger.Reader
	Blobs   storage.Blobs
	Tags    ledger.Tags
	// LedgerKey signed the published checkpoint and signs the first one of a bundle;
	// RouterKeys are those of the log so far: a receipt that Prove gives is by the one in force.
	LedgerKey  intents.Signer
	RouterKeys []intents.Signer
}

// Selection says what a bundle is about. The zero value is the whole log.
type Selection struct {
	Tenant   string    // empty: all
	Since    time.Time // records from then on; zero: all
	Complete bool      // with Tenant: leaves of all other records, and the tenant's tag key
	// Checkpoint that the auditor has: the bundle shows that the log has only
	// grown since. Empty: the log as it was at the first record.
	Checkpoint string
	// Masked withholds the arguments of intents of which a policy has masked some,
	// unless later records depend on them: for auditors who may not see masked values.
	Masked bool
}

// ExportReport describes an export.
type ExportReport struct {
	Records int64 `json:"records"`
	Leaves  int64 `json:"leaves"` // without their records
	// Withheld records have a part that is not shown.
	Withheld int64 `json:"withheld"`
	Size     int64 `json:"size"` // leaves of the last checkpoint
	// Pending records are durable, but in no checkpoint yet: they are not in the bundle.
	Pending int64 `json:"pending"`
	Bytes   int64 `json:"bytes"`
}

// Export streams a bundle. Memory is bounded by some batches of records
// for each processor and by how many intents are open. An error leaves a part of a bundle,
// which verifies as cut short.
func Export(ctx context.Context, w io.Writer, s Source, sel Selection) (ExportReport, error) {
	x := newExporter(s)
	x.sel, x.out = sel, w
	err := x.run(ctx)
	return x.done, err
}

type exporter struct {
	Source
	memory
	sel     Selection
	out     io.Writer
	sum     hash.Hash
	lines   int64
	done    ExportReport
	tenants *ledger.Tenants
	blobs   map[string]bool  // that are in the bundle
	earlier map[int64]bool   // intents before the first record that later records are about
	lacking map[int64]string // intents of which something was erased by an intent not read yet; by position, "tenant/user_id"
	ended   map[string]int64 // plans whose end was not read yet, though it took the texts beside their opening: its position
	from    int64
	last    ledger.Checkpoint
	prover  *ledger.Prover
	tiles   int64 // index after the last tile that was written
}

// ErrNoCheckpoint reports that a log was cut off before its first checkpoint: a bundle would prove nothing.
var ErrNoCheckpoint = errors.New("no checkpoint of this log is published yet, so nothing of it can be proven: start writ on the directory once (writ up --data DIR), and export again")

func newExporter(s Source) *exporter {
	return &exporter{
		Source: s, memory: memory{held: map[string]bool{}, release: map[int64]bool{}}, tenants: ledger.NewTenants(s.Records), sum: sha256.New(), blobs: map[string]bool{}, earlier: map[int64]bool{}, lacking: map[int64]string{}, ended: map[string]int64{},
	}
}

func (x *exporter) run(ctx context.Context) error {
	var err error
	if x.last, err = x.Ledger.Checkpoint(ctx, x.LedgerKey.VerificationKey()); err != nil {
		return err
	}
	if next := x.Records.Next(); x.last.Size > next { // a running writ has published it since they were opened
		if x.last, err = x.Ledger.CheckpointAt(ctx, next, x.LedgerKey); err != nil {
			return err
		}
	}
	if x.last.Size < 1 {
		return ErrNoCheckpoint
	}
	x.prover = x.Ledger.Prover(x.last.Size)
	x.done.Size, x.done.Pending = x.last.Size, x.Records.Next()-x.last.Size
	if err := x.begin(ctx); err != nil {
		return err
	}
	if err := x.header(ctx); err != nil {
		return err
	}
	if err := x.records(ctx); err != nil {
		return err
	}
	return x.end(ctx)
}

// begin finds the first record and, of what is before it, the intents that later
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
			if f, _ := storage.Follow(rec); f.Target < x.from { // an empty one is refused when it is read
				x.earlier[f.Target] = true
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
	hashes, err := x.prover.Consistency(ctx, first.Size)
	if err != nil {
		return err
	}
	if hashes != nil {
		h.Consistency = hashes
	}
	if h.Cosigned, h.Way, err = x.cosigned(ctx); err != nil {
		return err
	}
	return x.write(line{Bundle: &h})
}

// cosigned is the newest checkpoint that witnesses have cosigned, with its consistency
// proof. A log that is shorter than it was restored from a copy: then there is no proof,
// and verification fails.
func (x *exporter) cosigned(ctx context.Context) (note string, way [][]byte, err error) {
	c, err := x.Ledger.LatestCosigned(ctx, x.LedgerKey.VerificationKey())
	if err != nil || c.Size < 1 {
		return "", nil, nil //nolint:nilerr // there is none: the bundle is unwitnessed
	}
	if c.Size > x.last.Size {
		now, err := x.Ledger.Checkpoint(ctx, x.LedgerKey.VerificationKey())
		if err == nil && now.Size < c.Size {
			return c.Note, nil, nil
		}
		return "", nil, nil // it has grown since the bundle was begun
	}
	way, err = x.prover.Consistency(ctx, c.Size)
	return c.Note, way, err
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
	case c.Size < 1:
		return c, errors.New("the checkpoint is of an empty log, which every log continues: give a later one")
	case c.Size > x.last.Size:
		return c, fmt.Errorf("the checkpoint has %d records, the log %d: the log has lost some", c.Size, x.last.Size)
	}
	return c, nil
}
