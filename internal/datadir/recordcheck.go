package datadir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"aob.dev/writ/audit"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

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
