package router

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// HoldingStore stores which intents hold which blobs of a tenant. If it is lost it is rebuilt from
// the journal, except for what Want has stored.
type HoldingStore interface {
	// Next returns the position after the last record read, and that record's digest. A new store
	// returns 0 and "".
	Next(ctx context.Context) (next int64, last string, err error)
	// Put adds what the records before next hold, and then removes the holdings of the freed
	// intents.
	Put(ctx context.Context, next int64, last string, held []storage.Holding, freed []int64) error
	// Clear removes everything.
	Clear(ctx context.Context) error
	// Holders returns the positions of the intents that hold a blob.
	Holders(ctx context.Context, tenant, digest string) ([]int64, error)

	// Want stores durably which blobs an erasure of an intent is about, because its record will no
	// longer name them. Wanted returns them; known is false if none were stored.
	Want(ctx context.Context, position int64, digests []string) error
	WantedBlobs(ctx context.Context, position int64) (digests []string, known bool, err error)
}

// Holdings follows the journal and knows which intents hold a blob, so that an erasure need not
// read every record. Until its blobs are erased, an intent holds the blob that its member "from"
// names, the inputs retained while it was held, the script that it ran, and the artifact that it
// made. Mentioning a digest does not hold it.
type Holdings struct {
	records storage.Records
	store   HoldingStore
	log     *slog.Logger
	unsaved int // records since the last Put; owned by Run's goroutine

	*storage.Progress // of the records read
}

// NewHoldings begins where the store ends. Run does the work.
func NewHoldings(records storage.Records, store HoldingStore, log *slog.Logger) *Holdings {
	return &Holdings{records: records, store: store, log: log, Progress: storage.NewProgress()}
}

// Bounds: records read between two writes, and the pause after the store fails.
const (
	holdingBatch = 4096
	holdingRetry = time.Second
)

// Run follows the journal until ctx ends. A store that fails is tried again; meanwhile only
// erasures wait.
//
// Crash: the store is behind, and the records after its position are read again.
func (h *Holdings) Run(ctx context.Context) error {
	for {
		err := h.follow(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the caller ended it
		}
		h.log.WarnContext(ctx, "the index of who holds which blobs waits for its store; so do erasures of blobs", slog.String("error", err.Error()))
		if clock.Sleep(ctx, holdingRetry) != nil {
			return nil //nolint:nilerr // the caller ended it
		}
	}
}

func (h *Holdings) follow(ctx context.Context) error {
	next, err := h.begin(ctx)
	if err != nil {
		return err
	}
	for {
		if next, err = h.catchUp(ctx, next); err != nil {
			return err
		}
		if err := h.Gather(ctx); err != nil {
			return err
		}
	}
}

// begin returns where the store ends if it belongs to this journal, or else the beginning.
func (h *Holdings) begin(ctx context.Context) (int64, error) {
	next, last, err := h.store.Next(ctx)
	if err != nil || next == 0 {
		return 0, err
	}
	if next <= h.records.Next() {
		rec, err := h.records.Get(ctx, next-1)
		if err != nil {
			return 0, err
		}
		if rec.Digest() == last {
			return next, nil
		}
	}
	return 0, h.store.Clear(ctx)
}

// catchUp reads the records from next on. It stores the position after records without holdings
// only now and then, because reading them again is cheap.
func (h *Holdings) catchUp(ctx context.Context, next int64) (int64, error) {
	for rec, err := range h.records.Scan(ctx, next) {
		if err != nil {
			return next, err
		}
		held, err := heldBy(ctx, h.records, rec)
		if err != nil {
			return next, fmt.Errorf("record %d: %w", rec.Position, err)
		}
		freed, err := freedBy(ctx, h.records, rec)
		if err != nil {
			return next, fmt.Errorf("record %d: %w", rec.Position, err)
		}
		next = rec.Position + 1
		if h.unsaved++; h.unsaved < holdingBatch && len(held)+len(freed) == 0 {
			continue
		}
		if err := h.store.Put(ctx, next, rec.Digest(), held, freed); err != nil {
			return next, err
		}
		h.unsaved = 0
		h.Move(next)
	}
	h.Move(next)
	return next, nil
}

// heldBy returns the holdings that a record gives its intent.
func heldBy(ctx context.Context, records storage.Records, rec storage.Record) ([]storage.Holding, error) {
	switch rec.Kind {
	case storage.KindIntent:
		if ref := []byte("cas://"); !bytes.Contains(rec.Parts[storage.PartEnvelope], ref) && !bytes.Contains(rec.Parts[storage.PartInputs], ref) {
			return nil, nil // nearly all records: no need to read more
		}
		o, err := state.ReadIntent(rec)
		if err != nil || o.Decision.Verdict == intents.Deny {
			return nil, err
		}
		return holdingsOf(o, append(heldByArgs(o.Type, o.Args), heldByInputs(rec.Parts[storage.PartInputs])...)), nil
	case storage.KindOutcome:
		if !bytes.Contains(rec.Parts[storage.PartOutcome], []byte("script_hash")) && !bytes.Contains(rec.Parts[storage.PartOutcome], []byte("cas://")) && !bytes.Contains(rec.Parts[storage.PartResult], []byte("cas://")) {
			return nil, nil
		}
		out, of, err := state.OutcomeOf(rec)
		if err != nil {
			return nil, err
		}
		intent, err := records.Get(ctx, of)
		if err != nil {
			return nil, err
		}
		o, err := state.ReadIntent(intent)
		if err != nil {
			return nil, err
		}
		return holdingsOf(o, heldByOutcome(o.Type, out)), nil
	default:
		return nil, nil
	}
}

// freedBy returns the intents whose blobs a record erases: a record.erase or user.erase that takes
// effect.
func freedBy(ctx context.Context, records storage.Records, rec storage.Record) ([]int64, error) {
	if rec.Kind == storage.KindRelease {
		rel, err := state.ReleaseOf(rec)
		if err != nil {
			return nil, err
		}
		held, err := records.Get(ctx, rel.Target)
		if err != nil {
			return nil, err
		}
		return erasedBy(ctx, records, held, intents.Hold, rec.Position)
	}
	if rec.Kind == storage.KindIntent {
		return erasedBy(ctx, records, rec, intents.Allow, rec.Position)
	}
	return nil, nil
}

// erasedBy: at is where the intent takes effect.
func erasedBy(ctx context.Context, records storage.Records, rec storage.Record, as intents.Verdict, at int64) ([]int64, error) {
	named := func(typ string) bool {
		return bytes.Contains(rec.Parts[storage.PartEnvelope], []byte(typ)) || bytes.Contains(rec.Parts[storage.PartSummary], []byte(typ))
	}
	if !named(state.TypeErase) && !named(state.TypeUserErase) {
		return nil, nil // nearly all records: no need to read more
	}
	o, err := state.ReadIntent(rec)
	if err != nil || o.Decision.Verdict != as {
		return nil, err
	}
	switch o.Type {
	case state.TypeErase:
		a, err := state.ArgsOf[catalog.RecordErase](o)
		if err != nil || !slices.Contains(a.Parts, catalog.ErasesBlobs) {
			return nil, err
		}
		return []int64{a.Position}, nil
	case state.TypeUserErase:
		a, err := state.ArgsOf[catalog.UserErase](o)
		if err != nil {
			return nil, err
		}
		u, err := new(users).of(ctx, records, state.TargetTenant(o.Tenant, a.Tenant), a.UserID, at)
		return u.holders, err
	default:
		return nil, nil
	}
}

func holdingsOf(o state.Intent, digests []string) []storage.Holding {
	var out []storage.Holding
	for _, d := range digests {
		if intents.IsDigest(d) {
			out = append(out, storage.Holding{Tenant: o.Tenant, Digest: d, Position: o.Position})
		}
	}
	return out
}

// blobOf returns the digest in a reference to a blob, or "" if it is none.
func blobOf(ref string) string {
	digest, is := strings.CutPrefix(ref, "cas://")
	if !is {
		return ""
	}
	return digest
}

func heldByArgs(typ string, args json.RawMessage) []string {
	row, _ := catalog.Builtin().Lookup(typ)
	named, _ := catalog.InputsOf(row, args) // arguments that cannot be read name none
	var out []string
	for _, in := range named {
		out = append(out, blobOf(in.Ref))
	}
	return out
}

func heldByInputs(inputs json.RawMessage) []string {
	var f struct {
		Inputs []intents.HeldInput `json:"inputs"`
	}
	if json.Unmarshal(inputs, &f) != nil {
		return nil
	}
	var out []string
	for _, in := range f.Inputs {
		out = append(out, blobOf(in.Ref))
	}
	return out
}

func heldByOutcome(typ string, out intents.Outcome) []string {
	switch typ {
	case "exec_python":
		var digests []string
		for _, f := range out.Events {
			var run struct {
				Script string `json:"script_hash"`
			}
			if f.Event == "python_script.executed" && json.Unmarshal(f.Payload, &run) == nil {
				digests = append(digests, run.Script)
			}
		}
		return digests
	case "artifact.put":
		var made struct {
			Artifact string `json:"artifact"`
		}
		if json.Unmarshal(out.Result, &made) == nil {
			return []string{blobOf(made.Artifact)}
		}
	}
	return nil
}
