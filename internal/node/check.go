package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/storage/sqlite"
)

// checkAfter a start everything is checked, and then again and again.
const checkAfter, checkEvery = time.Minute, 6 * time.Hour

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
			if err := n.snapshots.Follow(ctx); err != nil {
				n.checked(ctx, err)
			}
		}
	}
}

// checkAll compares every record with its leaf and with the data stored beside its parts, and the
// state in memory and the snapshot with the records.
func (n *Node) checkAll(ctx context.Context) { n.checked(ctx, n.snapshots.Check(ctx)) }

// checked reports the findings of a check.
func (n *Node) checked(ctx context.Context, err error) {
	if damage, ok := errors.AsType[*sqlite.DamageError](err); ok {
		// A start that reads the record corrects it, so no start may skip it.
		err = errors.Join(&datadir.AlteredError{Position: damage.Position, Reason: damage.Reason}, n.snapshots.Remove())
	}
	var altered *datadir.AlteredError
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, snapshot.ErrDiffers):
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

// checkPromise checks that every record has its leaf after the time that receipts promise. If not,
// the ledger was restored from an older copy, or could not be written. It then stays as it is until
// an operator has confirmed, because new leaves would prove whatever the journal contains today.
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
		Do:     "put the ledger back that was; if it could not write and the journal is sound, on this machine: writ admin confirm ledger --data DIR",
	})
	return nil
}

// endedName is a file that exists while no process serves and the last one ended cleanly. It
// determines how often an open intent is retried.
const endedName = "ended"

// takeEnded removes the file, and remembers whether it was there.
func (n *Node) takeEnded() error {
	path := filepath.Join(n.cfg.Dir, endedName)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n.ended = true
	return durable.Remove(path)
}

// putEnded writes the file after a clean end, or if nothing was served since it was removed.
func (n *Node) putEnded() error {
	if !n.ended {
		return nil
	}
	return durable.Write(filepath.Join(n.cfg.Dir, endedName), nil)
}
