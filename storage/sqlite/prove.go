package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/judge"
)

// DamageError reports that what is stored beside a record differs from its parts, or that a
// record is missing.
type DamageError struct {
	Position int64
	Reason   string
}

func (d *DamageError) Error() string { return d.Reason }

// wrongPlace is the reason of a DamageError.
const wrongPlace = "what is kept beside its parts differs from them in which intent it is about, or whether it is open or takes a key"

// provedEntry is a stored entry as its parts have it.
type provedEntry struct {
	storage.Entry
	wrong bool             // something else is stored beside them
	lost  *codec.LostError // its erasable parts cannot be decrypted
}

// provedBatch is entries that were read together, and why no more could be.
type provedBatch struct {
	list []provedEntry
	err  error
}

// provedFrom yields the stored entries of a range in order. The error is a *DamageError
// where a record is missing, or does not give its key. Another goroutine reads and decodes
// ahead; it has ended when the iteration has. No read transaction is open while
// the consumer works: that would prevent the restart of the write-ahead log.
func provedFrom(ctx context.Context, db *sql.DB, keys *keyFiles, from, end int64) iter.Seq2[provedEntry, error] {
	return func(yield func(provedEntry, error) bool) {
		reading, stop := context.WithCancel(ctx)
		batches := make(chan provedBatch, 1)
		go func() {
			defer close(batches)
			for at := from; at < end && reading.Err() == nil; {
				var b provedBatch
				to := min(at+scanBatch, end)
				lost := make(map[int64]*codec.LostError)
				entries, err := readEntries(reading, db, keys, at, to, func(l *codec.LostError) { lost[l.Position] = l })
				at = after(entries, to)
				b.err = err
				for _, stored := range entries {
					e, wrong, err := judge.Prove(stored)
					if err != nil {
						b.err = &DamageError{e.Record.Position, err.Error()}
						break
					}
					b.list = append(b.list, provedEntry{e, wrong, lost[e.Record.Position]})
				}
				select {
				case batches <- b:
				case <-reading.Done():
				}
				if b.err != nil {
					return
				}
			}
		}()
		defer func() {
			stop()
			for range batches { // until it is closed
			}
		}()
		next := from
		for b := range batches {
			for _, p := range b.list {
				err := consecutive(p.Record.Position, next)
				next++
				if !yield(p, err) || err != nil {
					return
				}
			}
			if b.err != nil {
				yield(provedEntry{}, b.err)
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(provedEntry{}, err)
		}
	}
}

func consecutive(position, next int64) error {
	if position != next {
		return &DamageError{next, fmt.Sprintf("gap: position %d follows %d", position, next-1)}
	}
	return nil
}

// Entries yields the records from a position with the target that their parts give,
// and the subjects that they wrote. The error is a *DamageError where something else
// is stored beside them.
func (r *Records) Entries(ctx context.Context, from int64) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		for p, err := range r.proved(ctx, from) {
			if !yield(p.Entry, err) {
				return
			}
		}
	}
}

// proved ends with the first entry beside which something else is stored.
func (r *Records) proved(ctx context.Context, from int64) iter.Seq2[provedEntry, error] {
	return func(yield func(provedEntry, error) bool) {
		for p, err := range provedFrom(ctx, r.db, r.keys, from, r.next) {
			if err == nil && p.wrong {
				err = &DamageError{p.Record.Position, wrongPlace}
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}
