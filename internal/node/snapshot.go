package node

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
	"aob.dev/writ/storage/sqlite"
)

// followEvery is how often the number of records is checked.
const followEvery = 5 * time.Minute

// openJournal opens the journal with the snapshot and the records after it, or with all
// records if the snapshot is not valid.
func (n *Node) openJournal(ctx context.Context) error {
	n.snapshots = &snapshot.Local{Data: n.cfg.Dir, Key: func(r intents.Role) intents.Signer { return n.keys.Now(r) }}
	n.snapshots.Keeper = snapshot.Keeper[*sqlite.Index]{Path: datadir.Snapshot(n.cfg.Dir), Role: intents.RoleRouter, Index: sqlite.ReadIndex, Pace: snapshot.UsualPace, Log: n.cfg.Log}
	return n.snapshots.OpenJournal(ctx, func(s *snapshot.LocalSnapshot) error {
		r, err := sqlite.OpenRecords(ctx, datadir.Journal(n.cfg.Dir))
		if err != nil {
			return err
		}
		return errors.Join(s.Check(ctx, r), r.Close())
	}, n.replay)
}

// replay opens the journal; snap may be nil.
func (n *Node) replay(ctx context.Context, snap *snapshot.LocalSnapshot) (_ snapshot.Journal, _ *state.State, err error) {
	n.forgetFailure()
	contents, err := snap.Contents()
	if err != nil {
		return nil, nil, err
	}
	n.directory = contents.State
	n.journal = nil
	j, err := sqlite.OpenJournal(ctx, datadir.Journal(n.cfg.Dir), sqlite.JournalOptions{
		Observer: func(e storage.Entry) {
			n.directory.Observe(e)
			n.followers.Wake()
		},
		From:      contents.Index,
		OnFatal:   n.journalFailed,
		OnDamage:  n.journalDamaged,
		OnLost:    n.keysLost,
		OnWrite:   n.intents.Committed,
		Admit:     n.admit,
		FreeFloor: n.cfg.Limits.FreeFloor,
		Cache:     n.cfg.Limits.PageCache / 2,
	})
	if err == nil { // else j is no journal, and as an interface it would not be nil
		n.journal, n.room = j, j.Room
		n.snapshots.Journal, n.snapshots.State = j, n.directory
		return j, n.directory, nil
	}
	return nil, nil, err
}

// snapshotDiffers ends the node, because its state may be wrong. The next start reads all
// records.
func (n *Node) snapshotDiffers(ctx context.Context) {
	n.cfg.Log.ErrorContext(ctx, "the snapshot beside the journal is not what the records make: it is removed, and writ stops. The next start reads all records; check them with: writ audit fsck --data DIR")
	n.fail(errors.Join(snapshot.ErrDiffers, n.snapshots.Remove()))
}

// projected is where the recorder may begin: the state of the snapshot; nil: with the
// first record.
func (n *Node) projected() *state.State {
	if n.snapshots == nil {
		return nil
	}
	snap, _ := n.snapshots.Last()
	if snap == nil {
		return nil
	}
	contents, err := snap.Contents()
	snap.Forget()
	if err != nil {
		return nil
	}
	return contents.State
}

// openCellJournal opens the journal with the snapshot and the records after it, or with all
// records if the snapshot is not valid.
func (n *Node) openCellJournal(ctx context.Context, conn bus.Conn, instance string) error {
	role := intents.RoleLedger
	if n.has(natsserver.Router) {
		role = intents.RoleRouter
	}
	n.stored = &snapshot.Cell{
		Keeper: snapshot.Keeper[*jetstream.StreamIndex]{Path: datadir.Snapshot(n.cfg.Dir), Role: role, Index: jetstream.ReadStreamIndex, Pace: snapshot.UsualPace, Log: n.cfg.Log},
		End:    n.documented,
	}
	err := n.stored.OpenJournal(ctx, func(s *snapshot.CellSnapshot) error { return snapshot.CheckCell(ctx, conn, s) }, func(ctx context.Context, s *snapshot.CellSnapshot) (snapshot.Journal, *state.State, error) {
		return n.followStream(ctx, conn, instance, s)
	})
	if snap, _ := n.stored.Last(); snap != nil {
		snap.Forget()
	}
	return err
}

// documented is the position before which the documents certainly have everything. A recorder
// begins with a snapshot only if they have everything that it covers.
func (n *Node) documented(ctx context.Context) (int64, error) {
	if n.recorder == nil {
		return math.MaxInt64, nil
	}
	return n.recorder.Projected(ctx)
}

// followSnapshots keeps the snapshot.
func (n *Node) followSnapshots(ctx context.Context) error {
	return clock.Loop(ctx, followEvery, func() {
		if err := n.stored.Follow(ctx, n.journal.(*jetstream.Journal), n.keys.Now); err != nil && ctx.Err() == nil { //nolint:forcetypeassert // openStream made it
			n.cfg.Log.WarnContext(ctx, "the snapshot cannot be updated; writ keeps trying", slog.String("error", err.Error()))
		}
	})
}
