package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// Archive is a data directory, open for an auditor's tools. A process may write to it
// meanwhile.
type Archive struct {
	audit.Source
	Root    intents.Key     // signed the genesis
	Journal *sqlite.Records // Source.Records
	blobs   *lazyBlobs
}

// OpenArchive opens a data directory for reading.
func OpenArchive(ctx context.Context, dir string) (*Archive, error) {
	if err := Exists(dir); err != nil {
		return nil, err
	}
	held, err := keydir.LoadAll(Keys(dir))
	if err != nil {
		return nil, fmt.Errorf("%w: name a data directory with --data", err)
	}
	secret, err := ledger.ReadSecret(Tags(dir))
	if err != nil {
		return nil, err
	}
	if _, err := PlaceOf(dir); err != nil {
		return nil, err
	}
	blobs := &lazyBlobs{dir: dir}
	records, err := sqlite.OpenRecords(ctx, Journal(dir))
	if err != nil {
		return nil, err
	}
	root, err := RootOf(ctx, records)
	if err != nil {
		return nil, errors.Join(err, records.Close())
	}
	origin := state.Origin(root.Public)
	a := &Archive{Root: root, Journal: records, blobs: blobs, Source: audit.Source{
		Origin: origin, Records: records, Ledger: ledger.NewReader(Ledger(dir), origin),
		Blobs: blobs, Tags: ledger.NewTags(secret, origin), RouterKeys: held.ByRole(intents.RoleRouter),
	}}
	a.chooseLedgerKey(ctx, held.ByRole(intents.RoleLedger))
	return a, nil
}

// chooseLedgerKey takes the ledger key that signed the published checkpoint. If there is no
// checkpoint yet, it takes any.
func (a *Archive) chooseLedgerKey(ctx context.Context, held []intents.Signer) {
	keys := make([]intents.Key, 0, len(held))
	for _, s := range held {
		keys = append(keys, s.VerificationKey())
	}
	c, err := a.Ledger.Checkpoint(ctx, keys...)
	for _, s := range held {
		if err != nil || s.KID == c.KID {
			a.LedgerKey = s
		}
	}
}

// RootOf is the root key that the genesis names.
func RootOf(ctx context.Context, records storage.Records) (intents.Key, error) {
	rec, err := records.Get(ctx, 0)
	if err != nil {
		return intents.Key{}, fmt.Errorf("genesis: %w", err)
	}
	var c state.Control
	if err := json.Unmarshal(rec.Parts[storage.PartControl], &c); err != nil || c.Genesis == nil {
		return intents.Key{}, errors.New("record 0 is not a genesis")
	}
	g, err := state.OpenGenesis(*c.Genesis)
	if err != nil {
		return intents.Key{}, err
	}
	return g.RootJWK.ToKey()
}

// checkpointWait is how long AwaitCheckpoint waits for a checkpoint: several intervals.
const checkpointWait = 3 * time.Second

// AwaitCheckpoint waits until the published checkpoint covers what was durable at opening and, if
// witnesses cosign, until they have cosigned it. If no process publishes one, it gives up after a
// while, and pending proofs stay pending.
func (a *Archive) AwaitCheckpoint(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkpointWait)
	defer cancel()
	var failed error
	_ = clock.Every(ctx, ledger.CheckpointInterval/10, func() bool {
		c, err := a.Ledger.Checkpoint(ctx, a.LedgerKey.VerificationKey())
		failed = err
		return err != nil || c.Size >= a.Records.Next() && a.witnessed(ctx, c.Size)
	})
	return failed
}

// witnessed reports whether no witness has ever cosigned, or one has cosigned all leaves up to
// size.
func (a *Archive) witnessed(ctx context.Context, size int64) bool {
	c, err := a.Ledger.LatestCosigned(ctx, a.LedgerKey.VerificationKey())
	return err != nil || c.Size >= size
}

// Close ends reading.
func (a *Archive) Close() error {
	return errors.Join(a.Journal.Close(), a.blobs.Close())
}

// sampled is how many records CheckSample checks besides those that everything depends on.
const sampled = 64

// AlteredError reports that stored data differs from the written data.
type AlteredError struct {
	Position int64
	Reason   string
}

func (e *AlteredError) Error() string { return fmt.Sprintf("record %d: %s", e.Position, e.Reason) }

// sampleOf returns a sample of the records below size, in order.
func sampleOf(rests []int64, size int64) []int64 {
	at := append(slices.Clone(rests), size-1)
	for range min(sampled, size) {
		at = append(at, rand.Int64N(size)) //nolint:gosec // G404: a sample
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// CheckSample compares some records below size with their leaves: those that everything
// depends on, the last one, and some of the others.
func CheckSample(ctx context.Context, records storage.Records, judge *ledger.Judge, rests []int64, size int64) error {
	for _, at := range sampleOf(rests, size) {
		rec, err := records.Get(ctx, at)
		if err != nil {
			return err
		}
		if err := CheckRecord(ctx, judge, rec); err != nil {
			return err
		}
	}
	return nil
}

// CheckRecord returns an *AlteredError if a record does not agree with its leaf.
func CheckRecord(ctx context.Context, judge *ledger.Judge, rec storage.Record) error {
	err := judge.Record(ctx, rec)
	switch {
	case errors.Is(err, ledger.ErrPending):
		return nil
	case errors.Is(err, ledger.ErrDiverged):
		return &AlteredError{rec.Position, err.Error() + ". Find out who writes to the data directory (writ audit fsck), and restore a backup (writ admin restore)"}
	default:
		return err
	}
}

// CheckedRecords is a journal whose Scan compares the data stored beside the parts of each record
// with the parts, since only the parts are covered by the leaves. If they differ, the error is an
// *audit.Bad.
type CheckedRecords struct{ *sqlite.Records }

// Scan implements storage.Records.
func (p CheckedRecords) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for e, err := range p.Entries(ctx, from) {
			if damage, ok := errors.AsType[*sqlite.DamageError](err); ok {
				err = &audit.Bad{Position: damage.Position, Reason: damage.Reason}
			}
			if !yield(e.Record, err) || err != nil {
				return
			}
		}
	}
}
