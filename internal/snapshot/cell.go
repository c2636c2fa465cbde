package snapshot

import (
	"context"
	"errors"
	"sync/atomic"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage/jetstream"
)

// CellContents is the contents of a cell's journal.
type CellContents = Contents[*jetstream.StreamIndex]

// CellSnapshot is a snapshot of it.
type CellSnapshot = Snapshot[*jetstream.StreamIndex]

// Cell keeps the snapshot of a process that follows the journal of a cell. Each such
// process has its own, and signs it.
type Cell struct {
	Keeper[*jetstream.StreamIndex]
	// End is the position that a snapshot may not pass.
	End func(context.Context) (int64, error)

	Erased atomic.Bool // parts of records were erased that the file may have
}

// Contents of the file, or of no records.
func (s *Cell) Contents() (*CellContents, error) {
	snap, err := s.Reload()
	if err != nil {
		return nil, err
	}
	if snap == nil {
		return &CellContents{State: state.New(), Index: jetstream.NewStreamIndex()}, nil
	}
	return snap.Contents()
}

// Follow brings the file up to date with the records behind it.
//
// An erasure makes it due, since it may have the words that are gone. Applying the erasure's record
// removes them from the contents.
func (s *Cell) Follow(ctx context.Context, j *jetstream.Journal, by func(intents.Role) intents.Signer) error {
	erased := s.Erased.Swap(false) // first: an erasure that comes later may be behind the end
	all := j.Next()
	end, err := s.End(ctx)
	end = min(end, all)
	if last, _ := s.Last(); err == nil && (s.Due(end) || erased && last != nil) {
		err = s.renew(ctx, j, end, by)
	}
	if erased && (err != nil || end < all) {
		s.Erased.Store(true) // the file may have it still
	}
	return err
}

// renew the file with the records before end.
func (s *Cell) renew(ctx context.Context, j *jetstream.Journal, end int64, by func(intents.Role) intents.Signer) error {
	_, removed := s.Last()
	f, err := s.Contents()
	if err != nil { // it was removed or changed: the next one is made of all records
		return errors.Join(err, s.Remove())
	}
	if err := j.Follow(ctx, f.Index, end, f.State.Observe); err != nil {
		return err
	}
	if err := f.State.Err(); err != nil {
		return errors.Join(err, s.Remove())
	}
	if f.Next() == 0 {
		return nil
	}
	last, err := j.Get(ctx, f.Next()-1)
	if err != nil {
		return err
	}
	return s.Write(f, last, by(s.Role), removed)
}

// CheckCell checks that a snapshot is of the journal of the cell.
func CheckCell(ctx context.Context, conn bus.Conn, snap *CellSnapshot) error {
	contents, err := snap.Contents()
	if err != nil {
		return err
	}
	js, err := bus.JetStream(conn)
	if err != nil {
		return err
	}
	look, err := jetstream.NewLook(ctx, js, contents.Index)
	if err != nil {
		return err
	}
	return snap.Check(ctx, look)
}
