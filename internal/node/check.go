package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
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

// checkSample refuses a start on records that make no state, or are not what their
// leaves say: all that keys, users and roles rest on, the last one, and some of the
// others.
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

// keepChecking checks everything in the background, and raises an alarm.
func (n *Node) keepChecking(ctx context.Context) error {
	wait := time.NewTimer(checkAfter)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		n.checkAll(ctx)
		wait.Reset(checkEvery)
	}
}

// checkAll holds every record to its leaf, the state in memory and the key log to the
// records.
func (n *Node) checkAll(ctx context.Context) {
	err := n.checkRecords(ctx)
	if err == nil {
		err = n.checkKeyLog(ctx)
	}
	var altered *datadir.AlteredError
	switch {
	case ctx.Err() != nil:
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

// checkRecords holds every record to its leaf, and the state in memory to one that is
// made anew of the records. Where an order was erased meanwhile the records may say
// less than they did: that is no difference, and it is looked at again.
func (n *Node) checkRecords(ctx context.Context) error {
	for range stateChecks {
		erasures := n.directory.Erasures()
		next, digest, err := n.directory.Digest()
		if err != nil {
			return err
		}
		anew, err := n.checkLeaves(ctx, next)
		if err != nil {
			return err
		}
		_, is, err := anew.Digest()
		switch {
		case err != nil || is == digest:
			return err
		case n.directory.Erasures() == erasures:
			return &datadir.AlteredError{Position: next - 1, Reason: "the state in memory is not what the records make. Stop writ, and start it again"}
		}
	}
	return errors.New("the state in memory was not compared: orders were erased all the time")
}

// stateChecks bounds how often the state is looked at again.
const stateChecks = 3

// checkLeaves holds every record to its leaf, and gives the state that those before a
// position make.
func (n *Node) checkLeaves(ctx context.Context, next int64) (*state.State, error) {
	c, err := n.ledger.Checkpoint(ctx, n.ledger.Keys()...)
	if err != nil {
		return nil, err
	}
	anew := newState()
	var judge *ledger.Judge
	for rec, err := range n.journal.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if rec.Position%checkBatch == 0 {
			judge = n.ledger.Judge(c) // what it has read is not kept for good
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(checkPause):
			}
		}
		if err := errors.Join(datadir.CheckRecord(ctx, judge, rec), n.checkHolder(ctx, rec)); err != nil {
			return nil, err
		}
		if rec.Position < next {
			anew.Observe(state.EntryOf(rec))
		}
	}
	return anew, nil
}

// newState is the state before the first record, as a node keeps it.
func newState() *state.State { return state.New().ForgetWords() }

// checkHolder: the key of an order is known, in memory too.
func (n *Node) checkHolder(ctx context.Context, rec storage.Record) error {
	f, ok := storage.Follow(rec)
	if !ok || !f.Take || !f.Keyed || f.Refused {
		return nil
	}
	h, found, err := n.journal.Lookup(ctx, f.Key)
	if err == nil && (!found || h.Position < rec.Position) {
		err = &datadir.AlteredError{Position: rec.Position, Reason: "its idempotency key is not known"}
	}
	return err
}

func (n *Node) checkKeyLog(ctx context.Context) error {
	r, err := sqlite.OpenRecords(ctx, datadir.Journal(n.cfg.Dir))
	if err != nil {
		return err
	}
	_, err = datadir.CheckKeyLog(ctx, r)
	return errors.Join(err, r.Close())
}

// checkPromise: every record that is older than what receipts promise has its
// leaf. Where one has not, the ledger was put back from an older copy, or could not
// write for so long: it stays as it is until an operator has looked, for its tree
// would vouch for whatever the journal says today.
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
