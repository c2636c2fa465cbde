package node

import (
	"errors"
	"io"
	"strings"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/quota"
)

// TestUploads: what is received can be read in its turn alone, and is gone when it
// is forgotten.
func TestUploads(t *testing.T) {
	b, err := blobdir.Open(t.TempDir())
	must(t, err)
	k := nodeBlobs{quota.New(b, quota.Limits{Floor: -1, Tenant: -1})}
	id, err := k.Receive(t.Context(), "acme", "turn_1", strings.NewReader("x"))
	must(t, err)
	r, _, err := b.Open(t.Context(), storage.TurnScope("acme", "turn_1"), id)
	must(t, err)
	if got, err := io.ReadAll(r); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, r.Close())
	if _, _, err := b.Open(t.Context(), storage.TurnScope("acme", "turn_2"), id); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("in another turn: %v", err)
	}
	must(t, k.Forget(t.Context(), "acme", "turn_1"))
	if _, _, err := b.Open(t.Context(), storage.TurnScope("acme", "turn_1"), id); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("forgotten: %v", err)
	}
}
