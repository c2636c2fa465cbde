package node

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/state"
	"aob.dev/writ/storage/jetstream"
)

// Those of the journal of a cell.
type (
	cellFold     = snapshot.Fold[*jetstream.Fold]
	cellSnapshot = snapshot.Snapshot[*jetstream.Fold]
)

// cellSnapshots keeps the snapshot of a process that follows the journal of a cell. Each such
// process has its own, and signs it.
type cellSnapshots struct {
	path string
	role intents.Role
	pace snapshotPace
	// end is the position that a snapshot may not pass.
	end func(context.Context) (int64, error)
	log *slog.Logger

	erased atomic.Bool // parts of records were erased that the file may have

	mu   sync.Mutex    // guards the file and what follows
	last *cellSnapshot // the file; nil: none that counts
}

// read the snapshot; nil: all records must be read.
func (s *cellSnapshots) read(ctx context.Context, conn bus.Conn) *cellSnapshot {
	snap, err := snapshot.Read(s.path, s.role, jetstream.ReadFold)
	if err == nil {
		err = s.check(ctx, conn, snap)
	}
	if err == nil {
		return snap
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.leaveOut(ctx, err)
	}
	return nil
}

func (s *cellSnapshots) check(ctx context.Context, conn bus.Conn, snap *cellSnapshot) error {
	fold, err := snap.Fold()
	if err != nil {
		return err
	}
	js, err := bus.JetStream(conn)
	if err != nil {
		return err
	}
	look, err := jetstream.NewLook(ctx, js, fold.Index)
	if err != nil {
		return err
	}
	return snap.Check(ctx, look)
}

func (s *cellSnapshots) leaveOut(ctx context.Context, why error) {
	s.log.WarnContext(ctx, "the snapshot is left out, and all records are read", slog.String("reason", why.Error()))
}

// remove the snapshot durably.
func (s *cellSnapshots) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
	return durable.Remove(s.path)
}

// fold of the file, or of no records. The file is read again, since it is not kept in memory.
func (s *cellSnapshots) fold() (*cellFold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return &cellFold{State: state.New(), Index: jetstream.NewFold()}, nil
	}
	snap, err := snapshot.Read(s.path, s.role, jetstream.ReadFold)
	if err != nil {
		return nil, err
	}
	if snap.Digest != s.last.Digest {
		return nil, errors.New("it is not the one that was written")
	}
	return snap.Fold()
}

// due says whether a newer one should be made, of the records before end. erased: parts of
// records were erased that the file may have.
func (s *cellSnapshots) due(end int64, erased bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return end >= s.pace.every
	}
	return erased || s.pace.due(end-s.last.Next, s.last.Size)
}

// follow brings the file up to date with the records behind it. It is made of records alone,
// never of what is in memory.
//
// An erasure makes it due, since it may have the words that are gone. What the erasure has
// recorded takes them out of the fold.
func (s *cellSnapshots) follow(ctx context.Context, j *jetstream.Journal, by func(intents.Role) intents.Signer) error {
	erased := s.erased.Swap(false) // first: an erasure that comes later may be behind the end
	all := j.Next()
	end, err := s.end(ctx)
	end = min(end, all)
	if err == nil && s.due(end, erased) {
		err = s.renew(ctx, j, end, by)
	}
	if erased && (err != nil || end < all) {
		s.erased.Store(true) // the file may have it still
	}
	return err
}

// renew the file with the records before end.
func (s *cellSnapshots) renew(ctx context.Context, j *jetstream.Journal, end int64, by func(intents.Role) intents.Signer) error {
	f, err := s.fold()
	if err != nil { // it was removed or changed: the next one is made of all records
		return errors.Join(err, s.remove())
	}
	if err := j.Follow(ctx, f.Index, end, f.State.Observe); err != nil {
		return err
	}
	return s.write(ctx, f, j, by(s.role))
}

func (s *cellSnapshots) write(ctx context.Context, f *cellFold, records snapshot.Getter, by intents.Signer) error {
	if err := f.State.Err(); err != nil {
		return errors.Join(err, s.remove())
	}
	if f.Next() == 0 {
		return nil
	}
	last, err := records.Get(ctx, f.Next()-1)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err := snapshot.Write(s.path, f, last, by)
	if err == nil {
		s.last = snap
	}
	return err
}

// openCellJournal opens the journal with the snapshot and the records after it, or with all
// records if the snapshot is not valid.
func (n *Node) openCellJournal(ctx context.Context, conn bus.Conn, instance string) error {
	n.stored = &cellSnapshots{path: datadir.Snapshot(n.cfg.Dir), role: intents.RoleLedger, pace: usualPace, end: n.documented, log: n.cfg.Log}
	if n.has(natsserver.Router) {
		n.stored.role = intents.RoleRouter
	}
	snap := n.stored.read(ctx, conn)
	err := n.followStream(ctx, conn, instance, snap)
	if snap == nil || ctx.Err() != nil {
		return err
	}
	if err == nil {
		_, err = n.directory.View().Key(snap.Signer) // it may be revoked since
		err = errors.Join(err, n.directory.Err())
	}
	if err == nil {
		snap.Forget()
		n.stored.last = snap
		n.cfg.Log.InfoContext(ctx, "opened with a snapshot", slog.Int64("records", snap.Next), slog.Int64("behind", n.journal.Next()-snap.Next))
		return nil
	}
	n.stored.leaveOut(ctx, err)
	if n.journal != nil {
		err = n.journal.Close()
	}
	if err = errors.Join(err, n.stored.remove()); err != nil {
		return err
	}
	select {
	case <-n.fatal: //nolint:errcheck // of the journal that was given up
	default:
	}
	return n.followStream(ctx, conn, instance, nil)
}

// documented is the position before which the documents surely have everything. A recorder
// begins with a snapshot only if they have all that it knows.
func (n *Node) documented(ctx context.Context) (int64, error) {
	if n.recorder == nil {
		return math.MaxInt64, nil
	}
	return n.recorder.Projected(ctx)
}

// startSnapshots keeps the snapshot.
func (n *Node) startSnapshots(g *group) error {
	g.run("snapshots", func(ctx context.Context) error {
		_ = clock.Every(ctx, followEvery, func() bool {
			if err := n.stored.follow(ctx, n.journal.(*jetstream.Journal), n.keys.now); err != nil && ctx.Err() == nil { //nolint:forcetypeassert // openStream made it
				n.cfg.Log.WarnContext(ctx, "the snapshot is not brought up to date; writ goes on trying", slog.String("error", err.Error()))
			}
			return false
		})
		return nil
	})
	return nil
}
