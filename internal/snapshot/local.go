package snapshot

import (
	"context"
	"errors"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// LocalContents is the contents of a journal in SQLite.
type LocalContents = Contents[*sqlite.Index]

// LocalSnapshot is a snapshot of it.
type LocalSnapshot = Snapshot[*sqlite.Index]

// observe applies the next record to contents.
func observe(f *LocalContents, e storage.Entry) {
	f.State.Observe(e)
	f.Index.Observe(e)
}

// Local keeps the snapshot of a data directory with a journal in SQLite, and checks that with the
// snapshot and the state in memory. The fields are set before Follow or Check is called.
type Local struct {
	Keeper[*sqlite.Index]
	Data    string // the directory
	Journal interface {
		Next() int64
		Lookup(ctx context.Context, key storage.Key) (storage.Holder, bool, error)
	}
	State  *state.State
	Ledger *ledger.Ledger
	Key    func(intents.Role) intents.Signer
}

// Follow brings the snapshot up to date with the records after it. If there is none yet,
// or an erasure has removed it, it is made of all records. One that was read from the file is
// compared with the records first: see Check.
func (l *Local) Follow(ctx context.Context) error {
	last, removed := l.Last()
	switch {
	case !l.Due(l.Journal.Next()), last != nil && !l.Written():
		return nil
	case last == nil:
		return l.Check(ctx)
	}
	r, err := sqlite.OpenRecords(ctx, datadir.Journal(l.Data))
	if err != nil {
		return err
	}
	return errors.Join(l.followed(ctx, r, removed), r.Close())
}

func (l *Local) followed(ctx context.Context, r *sqlite.Records, removed int) error {
	snap, err := l.Reload()
	switch {
	case errors.Is(err, ErrOther):
		return ErrDiffers
	case err == nil && snap == nil: // it was removed meanwhile
		return nil
	case err == nil:
		err = snap.Check(ctx, r)
	}
	if err != nil { // it was removed or changed: the next one is made of all records
		return errors.Join(err, l.Remove())
	}
	contents, err := snap.Contents()
	if err != nil {
		return err
	}
	var rec storage.Record
	for e, err := range r.Entries(ctx, contents.Next()) {
		if err != nil {
			return err
		}
		observe(contents, e)
		rec = e.Record
	}
	return errors.Join(contents.State.Err(), l.Write(contents, rec, l.Key(intents.RoleRouter), removed))
}

// ErrDiffers is the error of a snapshot that differs from the records.
var ErrDiffers = errors.New("the snapshot is not what the records make")

const (
	// checkBatch records are checked at a time, with checkPause between.
	checkBatch = 256
	checkPause = 20 * time.Millisecond
)

// Check compares every record with its leaf, and the state in memory and the
// snapshot with the records. If an intent was erased meanwhile, the records may contain
// less than the state: that is not a difference, and the comparison is repeated.
func (l *Local) Check(ctx context.Context) error {
	for range stateChecks {
		erasures := l.State.Erasures()
		snap, erased := l.Last()
		next, digest, err := l.State.Digest()
		if err != nil {
			return err
		}
		contents, last, err := l.rebuild(ctx, next, snap)
		if err != nil {
			return err
		}
		_, is, err := contents.State.Digest()
		switch {
		case err != nil:
			return err
		case is == digest && next < l.Pace.Every:
			return nil // so few records are read as soon
		case is == digest:
			return l.Write(contents, last, l.Key(intents.RoleRouter), erased)
		case l.State.Erasures() == erasures:
			return &datadir.AlteredError{Position: next - 1, Reason: "the state in memory is not what the records make. Stop writ, and start it again"}
		}
	}
	return errors.New("the state in memory was not compared: intents were erased all the time")
}

// stateChecks bounds how often the state is compared.
const stateChecks = 3

// rebuild compares every record with its leaf. It returns the state of the records before a
// position, and the last of them. At its position the snapshot must equal that state.
func (l *Local) rebuild(ctx context.Context, next int64, snap *LocalSnapshot) (f *LocalContents, last storage.Record, err error) {
	r, err := sqlite.OpenRecords(ctx, datadir.Journal(l.Data))
	if err != nil {
		return nil, last, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	c, err := l.Ledger.Checkpoint(ctx, l.Ledger.Keys()...)
	if err != nil {
		return nil, last, err
	}
	f = &LocalContents{State: state.New(), Index: sqlite.NewIndex()}
	var judge *ledger.Judge
	for e, err := range r.Entries(ctx, 0) {
		if err != nil {
			return nil, last, err
		}
		if e.Record.Position%checkBatch == 0 {
			judge = l.Ledger.Judge(c) // its reads are not cached permanently
			if err := clock.Sleep(ctx, checkPause); err != nil {
				return nil, last, err
			}
		}
		if err := errors.Join(datadir.CheckRecord(ctx, judge, e.Record), l.checkHolder(ctx, e)); err != nil {
			return nil, last, err
		}
		if e.Record.Position >= next {
			continue // it is newer: only its leaf is checked
		}
		observe(f, e)
		last = e.Record
		if err := l.compare(f, snap); err != nil {
			return nil, last, err
		}
	}
	return f, last, nil
}

// compare compares at the position of the snapshot, unless that was removed meanwhile.
func (l *Local) compare(f *LocalContents, snap *LocalSnapshot) error {
	if snap == nil || f.Next() != snap.Next {
		return nil
	}
	digest, err := f.Digest()
	if now, _ := l.Last(); err == nil && now == snap && digest != snap.Digest {
		return ErrDiffers
	}
	return err
}

// checkHolder checks that the key of an intent is known, in memory, too, unless it is so old
// that it may have left.
func (l *Local) checkHolder(ctx context.Context, e storage.Entry) error {
	if !e.Take || e.Refused || l.State.LastAt().Sub(e.Record.At) >= storage.KeptFor {
		return nil
	}
	h, found, err := l.Journal.Lookup(ctx, e.Key)
	if err == nil && (!found || h.Position < e.Record.Position) {
		err = &datadir.AlteredError{Position: e.Record.Position, Reason: "its idempotency key is not known"}
	}
	return err
}

// Erasing is the journal as a router erases from it. The snapshot may contain erased data, so it is
// removed first.
func (l *Local) Erasing(j erasable) storage.Journal { return erasing{j, l} }

type erasable interface {
	storage.Journal
	storage.Eraser
}

type erasing struct {
	erasable
	snapshot *Local
}

// Erase implements storage.Eraser. A crash in it leaves no snapshot, and the next start
// erases again.
func (e erasing) Erase(ctx context.Context, positions ...int64) error {
	if err := e.snapshot.Remove(); err != nil {
		return err
	}
	return e.erasable.Erase(ctx, positions...)
}
