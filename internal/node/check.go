package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

const (
	// checkAfter a start everything is checked, and then again and again.
	checkAfter, checkEvery = time.Minute, 6 * time.Hour
	// checkBatch records are checked at a time, with checkPause between.
	checkBatch = 256
	checkPause = 20 * time.Millisecond
)

// checkSample refuses a start on records that make no state, or do not match their leaves.
// It checks all records that decide about keys, users and roles, the last one, and some of
// the others.
func (n *Node) checkSample(ctx context.Context) error {
	if err := n.directory.Err(); err != nil {
		return err
	}
	size := min(n.ledger.Size(), n.journal.Next())
	c, err := n.ledger.Checkpoint(ctx, n.ledger.Keys()...)
	if err != nil || size == 0 {
		return nil //nolint:nilerr // none is published yet
	}
	return datadir.CheckSample(ctx, n.journal, n.ledger.Judge(c), n.directory.Rests(), size)
}

// keepChecking checks everything in the background. Between checks it brings the snapshot
// up to date.
func (n *Node) keepChecking(ctx context.Context) error {
	check, follow := time.NewTimer(checkAfter), time.NewTicker(followEvery)
	defer check.Stop()
	defer follow.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-check.C:
			n.checkAll(ctx)
			check.Reset(checkEvery)
		case <-follow.C:
			if err := n.follow(ctx); err != nil {
				n.checked(ctx, err)
			}
		}
	}
}

// checkAll compares every record with its leaf, and the state in memory, the key log and
// the snapshot with the records.
func (n *Node) checkAll(ctx context.Context) { n.checked(ctx, n.checkRecords(ctx)) }

// checked reports what a check has found.
func (n *Node) checked(ctx context.Context, err error) {
	var damage *sqlite.DamageError
	if errors.As(err, &damage) {
		// A start that reads the record corrects it, so no start may skip it.
		err = errors.Join(&datadir.AlteredError{Position: damage.Position, Reason: damage.Reason}, n.snapshots.remove())
	}
	var altered *datadir.AlteredError
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errSnapshot):
		n.snapshotDiffers(ctx)
	case errors.As(err, &altered):
		n.cfg.Log.ErrorContext(ctx, "the data directory was changed by somebody else", slog.Int64("position", altered.Position), slog.String("reason", altered.Reason))
		n.raise(ctx, health.Condition{
			Name: conditionAltered, Reason: "what is stored is not what was written: the data directory was changed by somebody else, or is damaged",
			Do: "find out who writes to it, and what is wrong: writ audit fsck --data DIR",
		})
	case err != nil:
		n.cfg.Log.WarnContext(ctx, "the data directory could not be checked", slog.String("error", err.Error()))
	default:
		n.clear(ctx, conditionAltered)
	}
}

// checkRecords compares every record with its leaf, and the state in memory and the
// snapshot with the records. If an order was erased meanwhile, the records may contain
// less than the state: that is no difference, and the comparison is repeated.
func (n *Node) checkRecords(ctx context.Context) error {
	for range stateChecks {
		erasures := n.directory.Erasures()
		snap, erased := n.snapshots.now()
		next, digest, err := n.directory.Digest()
		if err != nil {
			return err
		}
		fold, last, err := n.fold(ctx, next, snap)
		if err != nil {
			return err
		}
		_, is, err := fold.State.Digest()
		switch {
		case err != nil:
			return err
		case is == digest:
			return n.snapshots.write(fold, last, n.keys.now(intents.RoleRouter), erased)
		case n.directory.Erasures() == erasures:
			return &datadir.AlteredError{Position: next - 1, Reason: "the state in memory is not what the records make. Stop writ, and start it again"}
		}
	}
	return errors.New("the state in memory was not compared: orders were erased all the time")
}

// stateChecks bounds how often the state is compared.
const stateChecks = 3

// fold compares every record with its leaf. It returns the state of the records before a
// position, and the last of them. At its position the snapshot must equal that state.
func (n *Node) fold(ctx context.Context, next int64, snap *localSnapshot) (f *localFold, last storage.Record, err error) {
	r, err := sqlite.OpenRecords(ctx, datadir.Journal(n.cfg.Dir))
	if err != nil {
		return nil, last, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	c, err := n.ledger.Checkpoint(ctx, n.ledger.Keys()...)
	if err != nil {
		return nil, last, err
	}
	f = &localFold{State: state.New(), Index: sqlite.NewIndex()}
	var judge *ledger.Judge
	for e, err := range r.Entries(ctx, 0) {
		if err != nil {
			return nil, last, err
		}
		if e.Record.Position%checkBatch == 0 {
			judge = n.ledger.Judge(c) // what it has read is not kept for good
			if err := clock.Sleep(ctx, checkPause); err != nil {
				return nil, last, err
			}
		}
		if err := errors.Join(datadir.CheckRecord(ctx, judge, e.Record), n.checkHolder(ctx, e)); err != nil {
			return nil, last, err
		}
		if e.Record.Position >= next {
			continue // it is newer: only its leaf is checked
		}
		observe(f, e)
		last = e.Record
		if err := n.checkSnapshot(f, snap); err != nil {
			return nil, last, err
		}
	}
	return f, last, nil
}

// checkSnapshot compares at the position of the snapshot, unless that was removed meanwhile.
func (n *Node) checkSnapshot(f *localFold, snap *localSnapshot) error {
	if snap == nil || f.Next() != snap.Next {
		return nil
	}
	digest, err := f.Digest()
	if now, _ := n.snapshots.now(); err == nil && now == snap && digest != snap.Digest {
		return errSnapshot
	}
	return err
}

// checkHolder checks that the key of an order is known, in memory, too, unless it is so old
// that it may have left.
func (n *Node) checkHolder(ctx context.Context, e storage.Entry) error {
	if !e.Take || e.Refused || n.directory.LastAt().Sub(e.Record.At) >= storage.KeptFor {
		return nil
	}
	h, found, err := n.journal.Lookup(ctx, e.Key)
	if err == nil && (!found || h.Position < e.Record.Position) {
		err = &datadir.AlteredError{Position: e.Record.Position, Reason: "its idempotency key is not known"}
	}
	return err
}

// checkPromise checks that every record has its leaf once the time is over that receipts
// promise. If not, the ledger was restored from an older copy, or could not be written. It
// then stays as it is until an operator has confirmed, because new leaves would prove
// whatever the journal contains today.
func (n *Node) checkPromise(ctx context.Context) error {
	size := n.ledger.Size()
	if size >= n.journal.Next() {
		return nil
	}
	rec, err := n.journal.Get(ctx, size)
	if err != nil {
		return err
	}
	if n.directory.LastAt().Sub(rec.At) <= intents.PromiseSeconds*time.Second {
		return nil
	}
	n.raise(ctx, health.Condition{
		Name: conditionLedger, Blocks: true,
		Reason: fmt.Sprintf("the ledger ends before record %d, whose leaf was promised: it was put back from an older copy, or could not write", size),
		Do:     "put the ledger back that was; if it could not write and the journal is sound, on this machine: writ confirm ledger --data DIR",
	})
	return nil
}
