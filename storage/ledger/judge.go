package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/transparency-dev/tessera/api/layout"

	"aob.dev/writ/storage"
)

// Judge compares records with their leaves, and leaves with the root of a
// checkpoint. Neighbouring records are cheapest: a bundle of leaves is read once.
// Not safe for concurrent use.
type Judge struct {
	log    *Reader
	at     Checkpoint
	prover *Prover
	first  int64 // of leaves
	leaves [][]byte
}

// Judge of a checkpoint of the log.
func (r *Reader) Judge(c Checkpoint) *Judge {
	return &Judge{log: r, at: c, prover: r.Prover(c.Size)}
}

// Leaf of a position, as the log has it; ErrPending if the checkpoint does not cover it.
func (j *Judge) Leaf(ctx context.Context, position int64) ([]byte, error) {
	if position >= j.at.Size {
		return nil, ErrPending
	}
	if position < j.first || position >= j.first+int64(len(j.leaves)) {
		j.first = position - position%layout.EntryBundleWidth
		var err error
		if j.leaves, err = j.log.Leaves(ctx, j.first, min(j.first+layout.EntryBundleWidth, j.at.Size), j.at.Size); err != nil {
			return nil, err
		}
	}
	return j.leaves[position-j.first], nil
}

// Record is ErrDiverged if the leaf of a record is not the commitment to it, or is
// not in the log; ErrPending if the checkpoint does not cover it.
func (j *Judge) Record(ctx context.Context, rec storage.Record) error {
	text, err := j.Leaf(ctx, rec.Position)
	if err != nil {
		return err
	}
	if !commits(text, rec) {
		return fmt.Errorf("%w: leaf %d is not the commitment to its record", ErrDiverged, rec.Position)
	}
	hashes, err := j.prover.Inclusion(ctx, rec.Position)
	if err == nil {
		err = VerifyInclusion(j.at, rec.Position, LeafHash(text), hashes)
	}
	if err != nil && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("%w: leaf %d is not in the log", ErrDiverged, rec.Position), err)
	}
	return err
}
