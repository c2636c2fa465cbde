package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Pace sets when a newer snapshot is made.
type Pace struct {
	Every int64 // records behind the last one: they are read within seconds
	Bytes int64 // of the last one for each record behind it: so less is written than the journal itself
}

// UsualPace is that of a process that serves.
var UsualPace = Pace{Every: 50_000, Bytes: 1 << 10}

// Keeper keeps the snapshot of a data directory, which a key of a role signs. It is made of records
// only, never of the state in memory. It is safe for concurrent use.
type Keeper[I Index] struct {
	Path  string
	Role  intents.Role
	Index ReadIndex[I]
	Pace  Pace
	Log   *slog.Logger

	mu      sync.Mutex   // guards the file and the fields below
	last    *Snapshot[I] // the file; nil: none that counts
	written bool         // by this process, so its records were read since the start
	removed int          // how often it was removed
}

// Open the file and check whose records it is of; nil: all records must be read. It is in force
// after Keep.
func (k *Keeper[I]) Open(ctx context.Context, check func(*Snapshot[I]) error) *Snapshot[I] {
	s, err := Read(k.Path, k.Role, k.Index)
	if err == nil {
		err = check(s)
	}
	if err == nil {
		return s
	}
	if !errors.Is(err, fs.ErrNotExist) {
		k.LeaveOut(ctx, err)
	}
	return nil
}

// LeaveOut discards the file.
func (k *Keeper[I]) LeaveOut(ctx context.Context, why error) {
	k.Log.WarnContext(ctx, "the snapshot is left out, and all records are read", slog.String("reason", why.Error()))
}

// Keep a snapshot that was opened.
func (k *Keeper[I]) Keep(s *Snapshot[I]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = s
}

// Last is the snapshot in force, and how often one was removed.
func (k *Keeper[I]) Last() (last *Snapshot[I], removed int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, k.removed
}

// Written reports whether this process has written the snapshot in force.
func (k *Keeper[I]) Written() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.written
}

// Due reports whether a newer one should be made of the records before a position.
func (k *Keeper[I]) Due(next int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		return next >= k.Pace.Every
	}
	return next-k.last.Next >= max(k.Pace.Every, k.last.Size/k.Pace.Bytes)
}

// ErrOther reports that the file is not the one that was written.
var ErrOther = errors.New("the snapshot is not the one that was written")

// Reload reads the file, since its contents are not in memory; nil: none is in force. The
// error is ErrOther, or that of Read.
func (k *Keeper[I]) Reload() (*Snapshot[I], error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		return nil, nil //nolint:nilnil // none is an answer
	}
	s, err := Read(k.Path, k.Role, k.Index)
	if err == nil && s.Digest != k.last.Digest {
		err = ErrOther
	}
	return s, err
}

// Remove the snapshot durably. A later one is made of the records as they are then.
func (k *Keeper[I]) Remove() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.written = nil, false
	k.removed++
	return durable.Remove(k.Path)
}

// Write writes a snapshot of contents, unless one was removed since they were begun: they may
// contain erased data. It is durable when Write returns; a crash leaves the one before.
func (k *Keeper[I]) Write(f *Contents[I], last storage.Record, by intents.Signer, removed int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.removed != removed {
		return nil
	}
	s, err := Write(k.Path, f, last, by)
	if err != nil {
		return err
	}
	k.last, k.written = s, true
	return nil
}

// Journal is one that was opened, with the state of its records.
type Journal interface {
	Next() int64
	Close() error
}

// OpenJournal opens a journal with the snapshot and the records behind it, or with all records if
// the snapshot is not valid. open may be called again with nil, after the first journal was closed.
func (k *Keeper[I]) OpenJournal(ctx context.Context, check func(*Snapshot[I]) error, open func(context.Context, *Snapshot[I]) (Journal, *state.State, error)) error {
	snap := k.Open(ctx, check)
	began := time.Now()
	j, s, err := open(ctx, snap)
	if snap == nil || ctx.Err() != nil {
		return err
	}
	if err == nil {
		_, err = s.View().Key(snap.Signer) // it may be revoked since
		err = errors.Join(err, s.Err())
	}
	if err == nil {
		k.Keep(snap)
		k.Log.InfoContext(ctx, "opened with a snapshot", slog.Int64("records", snap.Next), slog.Int64("behind", j.Next()-snap.Next), slog.Duration("took", time.Since(began)))
		return nil
	}
	k.LeaveOut(ctx, err)
	err = nil
	if j != nil {
		err = j.Close()
	}
	if err = errors.Join(err, k.Remove()); err != nil {
		return err
	}
	_, _, err = open(ctx, nil)
	return err
}
