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

// sampled is how many records CheckSample takes besides those that the directory
// rests on.
const sampled = 64

// AlteredError says that what is stored is not what was written.
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

// CheckSample holds some records below size to their leaves: those that the
// directory rests on, the last one, and some of the others.
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

// CheckRecord is an *AlteredError where the record is not what its leaf says.
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

// CheckKeyLog holds the journal's key log, and what else stands beside the parts of
// its records, to these: they alone are under the leaves. It says how many keys no
// record proves; an *AlteredError where one is not what the records say.
func CheckKeyLog(ctx context.Context, records *sqlite.Records) (unproven int64, err error) {
	var damage *sqlite.DamageError
	unproven, err = records.CheckKeys(ctx)
	if errors.As(err, &damage) {
		err = &AlteredError{damage.Position, damage.Reason}
	}
	return unproven, err
}
