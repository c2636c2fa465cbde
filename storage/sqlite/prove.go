package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/judge"
)

// DamageError says that what is stored beside a record differs from its parts, or that a
// record is missing.
type DamageError struct {
	Position int64
	Reason   string
}

func (d *DamageError) Error() string { return d.Reason }

// Reasons of a DamageError.
const (
	wrongKey   = "the key log holds another idempotency key than its record: writ up puts it right from the record"
	missingKey = "the key log lacks the idempotency key of its record: writ up puts it right from the record"
	wrongPlace = "what is kept beside its parts differs from them in which order it is about, or whether it is open"
)

// proved is a stored entry as its parts have it.
type proved struct {
	judge.Proved
	wrongKey string // how the key log differs from the parts; empty: it does not
}

// provedBatch is entries that were read together, and why no more could be.
type provedBatch struct {
	list []proved
	err  error
}

// provedFrom yields the stored entries of a range in order, with their keys. The error
// is a *DamageError where a record is missing, or the key log cannot be right. Another goroutine reads and
// decodes ahead; it has ended when the iteration has. No read transaction is open while
// the consumer works: that would keep the write-ahead log from being started over.
func provedFrom(ctx context.Context, db *sql.DB, from, end int64) iter.Seq2[proved, error] {
	return func(yield func(proved, error) bool) {
		reading, stop := context.WithCancel(ctx)
		batches := make(chan provedBatch, 1)
		go func() {
			defer close(batches)
			for at := from; at < end && reading.Err() == nil; at += scanBatch {
				var b provedBatch
				entries, err := readEntries(reading, db, at, min(at+scanBatch, end))
				for _, e := range entries {
					b.list = append(b.list, proved{Proved: judge.Prove(e)})
				}
				b.err = err
				select {
				case batches <- b:
				case <-reading.Done():
				}
				if err != nil {
					return
				}
			}
		}()
		defer func() {
			stop()
			for range batches { // until it is closed
			}
		}()
		log := keylog{db: db, from: from, end: end}
		next := from
		for b := range batches {
			for _, p := range b.list {
				err := consecutive(p.Record.Position, next)
				if err == nil {
					err = log.key(ctx, &p)
				}
				next++
				if !yield(p, err) || err != nil {
					return
				}
			}
			if b.err != nil {
				yield(proved{}, b.err)
				return
			}
		}
		err := ctx.Err()
		if err == nil {
			err = log.finish(ctx)
		}
		if err != nil {
			yield(proved{}, err)
		}
	}
}

func consecutive(position, next int64) error {
	if position != next {
		return &DamageError{next, fmt.Sprintf("gap: position %d follows %d", position, next-1)}
	}
	return nil
}

// CheckKeys compares what is stored beside the records, mainly their keys, with their
// parts. The error is a *DamageError if they differ; unproven are the
// keys that no part proves any more.
func (r *Records) CheckKeys(ctx context.Context) (unproven int64, err error) {
	for p, err := range r.proved(ctx, 0) {
		if err != nil {
			return unproven, err
		}
		if p.Take && !p.Keyed {
			unproven++
		}
	}
	return unproven, nil
}

// Entries yields the records from a position with what their parts say they are about,
// and the subjects that they touched. The error is a *DamageError where something else
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
func (r *Records) proved(ctx context.Context, from int64) iter.Seq2[proved, error] {
	return func(yield func(proved, error) bool) {
		for p, err := range provedFrom(ctx, r.db, from, r.next) {
			switch {
			case err != nil:
			case p.Wrong:
				err = &DamageError{p.Record.Position, wrongPlace}
			case p.wrongKey != "":
				err = &DamageError{p.Record.Position, p.wrongKey}
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}
