package upkeep

import (
	"context"
	"iter"

	"aob.dev/writ/storage"
)

// sharedAhead is how many records the first reader of a shared scan may be ahead of the second.
const sharedAhead = 256

// sharedScan is a journal that two readers scan from its beginning, and which is read once. The
// second gets each record after the first has gone on to the next.
type sharedScan struct {
	storage.Records
	passed chan storage.Record // closed at the end of the first reader's scan
	left   <-chan struct{}     // closed when the second reader has ended
}

func newSharedScan(records storage.Records, left <-chan struct{}) *sharedScan {
	return &sharedScan{records, make(chan storage.Record, sharedAhead), left}
}

// Scan implements storage.Records for the first reader, who scans once.
func (s *sharedScan) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		defer close(s.passed)
		for rec, err := range s.Records.Scan(ctx, from) {
			if !yield(rec, err) || err != nil {
				return
			}
			select {
			case s.passed <- rec:
			case <-s.left: // the first goes on alone
			}
		}
	}
}

// second is the journal for the second reader.
func (s *sharedScan) second() storage.Records { return secondScan{s.Records, s.passed} }

type secondScan struct {
	storage.Records
	passed <-chan storage.Record
}

// Scan implements storage.Records. It yields what the first reader has passed on since the scan
// before.
func (s secondScan) Scan(ctx context.Context, _ int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for {
			select {
			case rec, more := <-s.passed:
				if !more || !yield(rec, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
