package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/fsck"

	"aob.dev/writ/intents"
)

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
