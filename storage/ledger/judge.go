package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/fsck"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Judge compares records with their leaves, and leaves with the root of a
// checkpoint. Neighbouring records are cheapest: a bundle of leaves is read once.
// Not safe for concurrent use.
type Judge struct {
	log        *Reader
	checkpoint Checkpoint
	prover     *Prover
	first      int64 // of leaves
	leaves     [][]byte
}

// Judge of a checkpoint of the log.
func (r *Reader) Judge(c Checkpoint) *Judge {
	return &Judge{log: r, checkpoint: c, prover: r.Prover(c.Size)}
}

// Leaf of a position, as the log has it; ErrPending if the checkpoint does not cover it.
func (j *Judge) Leaf(ctx context.Context, position int64) ([]byte, error) {
	if position >= j.checkpoint.Size {
		return nil, ErrPending
	}
	if position < j.first || position >= j.first+int64(len(j.leaves)) {
		j.first = position - position%layout.EntryBundleWidth
		var err error
		if j.leaves, err = j.log.Leaves(ctx, j.first, min(j.first+layout.EntryBundleWidth, j.checkpoint.Size), j.checkpoint.Size); err != nil {
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
		err = VerifyInclusion(j.checkpoint, rec.Position, LeafHash(text), hashes)
	}
	if err != nil && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("%w: leaf %d is not in the log", ErrDiverged, rec.Position), err)
	}
	return err
}

// Fsck checks the whole directory: every tile and the root of the published
// checkpoint must follow from the leaves. Tessera's own check decides, and nothing
// is written. Fsck returns the checkpoint that it checked.
func (r *Reader) Fsck(ctx context.Context, keys ...intents.Key) (Checkpoint, error) {
	logTessera()
	c, err := r.Checkpoint(ctx, keys...)
	if err != nil {
		return c, err
	}
	for _, key := range keys {
		if key.KID != c.KID {
			continue
		}
		v, err := NoteVerifier(r.origin, key.Public)
		if err != nil {
			return c, err
		}
		workers := uint(runtime.GOMAXPROCS(0))
		if err := fsck.New(r.origin, v, r.files, hashBundle, fsck.Opts{N: workers}).Check(ctx); err != nil {
			return c, fmt.Errorf("ledger: %w", err)
		}
		return c, nil
	}
	return c, errors.New("ledger: the checkpoint names no key of the log") // Checkpoint has found one
}

// hashBundle hashes the leaves of an entry bundle.
func hashBundle(bundle []byte) ([][]byte, error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	out := make([][]byte, 0, len(b.Entries))
	for _, leaf := range b.Entries {
		out = append(out, rfc6962.DefaultHasher.HashLeaf(leaf))
	}
	return out, nil
}
