package node

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// Those of a journal in SQLite.
type (
	localFold     = snapshot.Fold[*sqlite.Index]
	localSnapshot = snapshot.Snapshot[*sqlite.Index]
)

// observe takes the next record into a fold.
func observe(f *localFold, e storage.Entry) {
	f.State.Observe(e)
	f.Index.Observe(e)
}

// readLocal reads a snapshot of the log that records are of.
func readLocal(ctx context.Context, path string, records snapshot.Getter) (*localSnapshot, error) {
	s, err := snapshot.Read(path, intents.RoleRouter, sqlite.ReadIndex)
	if err == nil {
		err = s.Check(ctx, records)
	}
	return s, err
}

const (
	// followEvery is how often the number of records is looked at.
	followEvery = 5 * time.Minute
)

// snapshotPace says when a newer snapshot is made.
type snapshotPace struct {
	every int64 // records behind the last one: they are read within seconds
	bytes int64 // of the last one for each record behind it: so less is written than the journal itself
}

var usualPace = snapshotPace{every: 50_000, bytes: 1 << 10}

func (p snapshotPace) due(behind, size int64) bool { return behind >= max(p.every, size/p.bytes) }

// snapshots keeps the snapshot of the data directory. It is made of the records only,
// never of what is in memory.
type snapshots struct {
	path string
	pace snapshotPace
	log  *slog.Logger

	mu      sync.Mutex     // guards what follows
	last    *localSnapshot // the file; nil: none that counts
	checked bool           // it was compared with the records since the start
	erased  int            // how often parts of records were erased
}

// read the snapshot of a directory; nil: all records must be read.
func (s *snapshots) read(ctx context.Context, journal string) *localSnapshot {
	r, err := sqlite.OpenRecords(ctx, journal)
	if err != nil {
		return nil // nothing to take a snapshot of
	}
	snap, err := readLocal(ctx, s.path, r)
	if err = errors.Join(err, r.Close()); err == nil {
		return snap
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.log.WarnContext(ctx, "the snapshot is left out, and all records are read", slog.String("reason", err.Error()))
	}
	return nil
}

// remove the snapshot durably. A later one is made of the records as they are then.
func (s *snapshots) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.checked = nil, false
	s.erased++
	return durable.Remove(s.path)
}

// now is the snapshot in force, and how often parts of records were erased.
func (s *snapshots) now() (last *localSnapshot, erased int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.erased
}

// due is the snapshot if a newer one should be made from it. It must have been compared
// with the records since the start.
func (s *snapshots) due(next int64) (last *localSnapshot, erased int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.checked || !s.pace.due(next-s.last.Next, s.last.Size) {
		return nil, 0
	}
	return s.last, s.erased
}

// write a snapshot of a fold, unless parts of records were erased since it began: the
// fold may contain them.
func (s *snapshots) write(f *localFold, last storage.Record, router intents.Signer, erased int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.erased != erased || f.Next() < s.pace.every {
		return nil
	}
	snap, err := snapshot.Write(s.path, f, last, router)
	if err != nil {
		return err
	}
	s.last, s.checked = snap, true
	return nil
}

// openJournal opens the journal with the snapshot and the records after it, or with all
// records if the snapshot is not valid.
func (n *Node) openJournal(ctx context.Context) error {
	n.snapshots = &snapshots{path: datadir.Snapshot(n.cfg.Dir), pace: usualPace, log: n.cfg.Log}
	snap := n.snapshots.read(ctx, datadir.Journal(n.cfg.Dir))
	if snap == nil {
		return n.replay(ctx, nil)
	}
	began := time.Now()
	err := n.replay(ctx, snap)
	if err == nil {
		_, err = n.directory.View().Key(snap.Signer) // it may be revoked since
	}
	if err == nil {
		err = n.directory.Err()
	}
	if err == nil {
		n.snapshots.last = snap
		n.cfg.Log.InfoContext(ctx, "opened with a snapshot", slog.Int64("records", snap.Next), slog.Int64("behind", n.journal.Next()-snap.Next), slog.Duration("took", time.Since(began)))
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	n.cfg.Log.WarnContext(ctx, "the snapshot is left out, and all records are read", slog.String("reason", err.Error()))
	if n.journal != nil {
		if err := n.journal.Close(); err != nil {
			return err
		}
	}
	if err := n.snapshots.remove(); err != nil {
		return err
	}
	return n.replay(ctx, nil)
}

// replay opens the journal; snap may be nil.
func (n *Node) replay(ctx context.Context, snap *localSnapshot) (err error) {
	fold := &localFold{State: state.New()}
	if snap != nil {
		if fold, err = snap.Fold(); err != nil {
			return err
		}
	}
	n.directory = fold.State
	n.journal = nil
	j, err := sqlite.OpenJournal(ctx, datadir.Journal(n.cfg.Dir), sqlite.JournalOptions{
		Observer: func(e storage.Entry) {
			n.directory.Observe(e)
			n.wakers.wake()
		},
		From:      fold.Index,
		OnFatal:   n.journalFailed,
		OnDamage:  n.journalDamaged,
		OnWrite:   n.orders.Committed,
		Admit:     n.admit,
		FreeFloor: n.cfg.Limits.FreeFloor,
		Cache:     n.cfg.Limits.PageCache / 2,
	})
	if err == nil { // else j is no journal, and as an interface it would not be nil
		n.journal, n.room = j, j.Room
	}
	return err
}

// projected is where the recorder may begin: the state of the snapshot; nil: with the
// first record.
func (n *Node) projected() *state.State {
	if n.snapshots == nil {
		return nil
	}
	snap, _ := n.snapshots.now()
	if snap == nil {
		return nil
	}
	fold, err := snap.Fold()
	snap.Forget()
	if err != nil {
		return nil
	}
	return fold.State
}

// missing: there are enough records for a snapshot, and there is none.
func (s *snapshots) missing(next int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last == nil && next >= s.pace.every
}

// follow brings the snapshot up to date with the records after it. If there is none yet,
// or an erasure has removed it, it is made of all records.
func (n *Node) follow(ctx context.Context) error {
	if n.snapshots.missing(n.journal.Next()) {
		return n.checkRecords(ctx)
	}
	last, erased := n.snapshots.due(n.journal.Next())
	if last == nil {
		return nil
	}
	r, err := sqlite.OpenRecords(ctx, datadir.Journal(n.cfg.Dir))
	if err != nil {
		return err
	}
	return errors.Join(n.followed(ctx, r, last, erased), r.Close())
}

func (n *Node) followed(ctx context.Context, r *sqlite.Records, last *localSnapshot, erased int) error {
	snap, err := readLocal(ctx, n.snapshots.path, r)
	if err != nil { // it was removed or changed: the next one is made of all records
		return errors.Join(err, n.snapshots.remove())
	}
	if snap.Digest != last.Digest {
		return errSnapshot
	}
	fold, err := snap.Fold()
	if err != nil {
		return err
	}
	var rec storage.Record
	for e, err := range r.Entries(ctx, fold.Next()) {
		if err != nil {
			return err
		}
		observe(fold, e)
		rec = e.Record
	}
	return errors.Join(fold.State.Err(), n.snapshots.write(fold, rec, n.keys.now(intents.RoleRouter), erased))
}

// errSnapshot is the error of a snapshot that differs from the records.
var errSnapshot = errors.New("the snapshot is not what the records make")

// snapshotDiffers ends the node, because its state may be wrong. The next start reads all
// records.
func (n *Node) snapshotDiffers(ctx context.Context) {
	n.cfg.Log.ErrorContext(ctx, "the snapshot beside the journal is not what the records make: it is removed, and writ stops. The next start reads all records; check them with: writ audit fsck --data DIR")
	err := errors.Join(errSnapshot, n.snapshots.remove())
	select {
	case n.fatal <- err:
	default: // it ends already
	}
}

// erasing is the journal as a router erases from it. The snapshot may contain what is
// erased, so it is removed first.
type erasing struct {
	journal
	snapshots *snapshots
}

// Erase implements storage.Eraser. A crash in it leaves no snapshot, and the next start
// erases again.
func (e erasing) Erase(ctx context.Context, what ...storage.Erasure) error {
	if err := e.snapshots.remove(); err != nil {
		return err
	}
	return e.journal.Erase(ctx, what...)
}
