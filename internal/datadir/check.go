package datadir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// sampled is how many records CheckSample checks besides those that everything depends on.
const sampled = 64

// AlteredError says that stored data is not what was written.
type AlteredError struct {
	Position int64
	Reason   string
}

func (e *AlteredError) Error() string { return fmt.Sprintf("record %d: %s", e.Position, e.Reason) }

// sampleOf the records below size, in order.
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
		return &AlteredError{rec.Position, err.Error() + ". Find out who writes to the data directory (writ audit fsck), and restore a backup (writ restore)"}
	default:
		return err
	}
}

// CheckKeyLog compares the journal's key log and other indices with the parts of its
// records, since only the parts are under the leaves. It counts the keys that no record
// proves. It returns an *AlteredError if an index does not agree with the records.
func CheckKeyLog(ctx context.Context, records *sqlite.Records) (unproven int64, err error) {
	var damage *sqlite.DamageError
	unproven, err = records.CheckKeys(ctx)
	if errors.As(err, &damage) {
		err = &AlteredError{damage.Position, damage.Reason}
	}
	return unproven, err
}
