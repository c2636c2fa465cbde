package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/transparency-dev/tessera"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// retryAfter is how long a disk that refuses is left alone.
const retryAfter = time.Second

// resume takes the integrated size and compares the last leaf with its record.
// That leaf's record digest covers one record; the checks of indexes verify that the earlier
// ones were compared when they were appended.
func (l *Ledger) resume(ctx context.Context) error {
	n, err := l.integrated(ctx)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	size := int64(n) //nolint:gosec // G115: a tree of 2^63 leaves fits no disk
	if err := ahead(size, l.cfg.Records.Next()); err != nil {
		return err
	}
	if size > 0 {
		if err := l.compare(ctx, size-1, size); err != nil {
			return err
		}
	}
	l.Move(size)
	return nil
}

// compare a leaf with its record.
func (l *Ledger) compare(ctx context.Context, position, size int64) error {
	leaves, err := l.Leaves(ctx, position, position+1, size)
	if err != nil {
		return err
	}
	rec, err := l.cfg.Records.Get(ctx, position)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if !commits(leaves[0], rec) {
		return fmt.Errorf("%w: leaf %d is not the commitment to record %d. The journal is not the one that this ledger was made from: "+
			"put back the journal that it was made from", ErrDiverged, position, position)
	}
	return nil
}

// Run appends what the journal has and the ledger does not, until ctx ends. A
// write that fails is tried again. A leaf at another index than its record's
// position halts it for good: Err returns the error, and only ctx ends Run then.
//
// Crash at any point: Tessera has integrated whole batches or nothing of them,
// and the next start continues after the last integrated leaf.
func (l *Ledger) Run(ctx context.Context) error {
	var err error
	for {
		if err != nil {
			err = l.resume(ctx) // what a failed batch has left is not known
		}
		if err == nil {
			err = l.catchUp(ctx)
		}
		wait := (<-chan time.Time)(nil)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // told to end
		case errors.Is(err, ErrDiverged) || errors.Is(err, ErrAhead):
			l.halted(ctx, err)
			<-ctx.Done()
			return nil
		case err != nil:
			l.cfg.Log.WarnContext(ctx, "the ledger waits for its disk", slog.String("error", err.Error()))
			wait = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wait:
		case <-l.Notify():
		}
	}
}

func (l *Ledger) halted(ctx context.Context, err error) {
	l.cfg.Log.ErrorContext(ctx, "the ledger has halted; intents go on without proofs", slog.String("error", err.Error()))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halt = err
}

// Sync appends what is durable now and waits until it is in a published
// checkpoint, whether Run runs or not.
func (l *Ledger) Sync(ctx context.Context) (Checkpoint, error) {
	next := l.cfg.Records.Next()
	if err := l.catchUp(ctx); err != nil {
		return Checkpoint{}, err
	}
	return l.WaitPublished(ctx, next)
}

// catchUp appends all that is durable, a batch at a time.
func (l *Ledger) catchUp(ctx context.Context) error {
	l.appending.Lock()
	defer l.appending.Unlock()
	if l.cfg.Held != nil && l.cfg.Held() {
		return nil // until Wake
	}
	var batch []Leaf // mostly of a few records
	for rec, err := range l.cfg.Records.Scan(ctx, l.Size()) {
		if err != nil {
			return err
		}
		leaf, err := l.leaf(ctx, rec)
		if err != nil {
			return err
		}
		if batch = append(batch, leaf); len(batch) < batchSize {
			continue
		}
		if err := l.add(ctx, batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return l.add(ctx, batch)
}

func (l *Ledger) leaf(ctx context.Context, rec storage.Record) (Leaf, error) {
	tenant, err := l.tenants.Tenant(ctx, rec)
	if err != nil {
		return Leaf{}, err
	}
	tag, err := l.tags.Tag(tenant)
	if err != nil {
		return Leaf{}, err
	}
	leaf := NewLeaf(rec, tag)
	if n := len(leaf.Bytes()); n > MaxLeaf {
		return leaf, fmt.Errorf("leaf %d has %d bytes", rec.Position, n)
	}
	return leaf, nil
}

// add appends leaves and waits until all are integrated, each at its position.
// ctx does not interrupt it: the end of what was begun must be known. The
// leaves are one batch, unless adding them takes longer than batchAge; so one
// that fails leaves nothing.
func (l *Ledger) add(ctx context.Context, leaves []Leaf) error {
	if len(leaves) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	futures := make([]tessera.IndexFuture, len(leaves))
	for i, leaf := range leaves {
		futures[i] = l.append(ctx, tessera.NewEntry(leaf.Bytes()))
	}
	failpoint.Hit(failpoint.LedgerAdded)
	var failed, moved error
	for i, future := range futures {
		index, err := future()
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case index.Index != uint64(leaves[i].Position): //nolint:gosec // G115: not negative
			moved = fmt.Errorf("%w: record %d became leaf %d", ErrDiverged, leaves[i].Position, index.Index)
		}
	}
	if moved != nil || failed != nil {
		return errors.Join(moved, failed)
	}
	failpoint.Hit(failpoint.LedgerIntegrated)
	l.Move(leaves[len(leaves)-1].Position + 1)
	return nil
}

// WaitPublished waits until a checkpoint of at least size leaves is published, and
// gives it. The error is the context's, or why the ledger has halted.
func (l *Ledger) WaitPublished(ctx context.Context, size int64) (c Checkpoint, err error) {
	ended := clock.Every(ctx, CheckpointInterval/10, func() (done bool) {
		if c, err = l.Checkpoint(ctx, l.Keys()...); err == nil && c.Size >= size {
			return true
		}
		if halt := l.Err(); halt != nil {
			err = halt
			return true
		}
		return false
	})
	return c, errors.Join(ended, err)
}
