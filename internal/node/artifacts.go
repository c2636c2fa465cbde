package node

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"io"

	"aob.dev/writ/gateway"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/quota"
)

// linkKeyInfo separates the key of links from tenants' tag keys: both are derived
// from the secret of the data directory.
const linkKeyInfo = "writ artifact link key v1\n"

// links to artifacts: the executor makes them, the gateway opens them.
func (n *Node) links() (gateway.Links, error) {
	secret, err := ledger.CreateSecret(datadir.Tags(n.cfg.Dir))
	if err != nil {
		return gateway.Links{}, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, linkKeyInfo, sha256.Size)
	return gateway.Links{Key: key}, err
}

// kept are the node's blobs as the gateway sees them.
type kept struct{ *quota.Blobs }

// Room implements gateway.Artifacts. What is kept is there twice for a moment: as
// it was received, and for good.
func (k kept) Room(ctx context.Context, tenant string, bytes int64) error {
	return roomOf(k.Blobs.Room(ctx, tenant, 2*bytes))
}

// Receive implements gateway.Artifacts: as a temporary file of the turn.
func (k kept) Receive(ctx context.Context, tenant, turn string, r io.Reader) (string, error) {
	f, err := k.Put(ctx, storage.TurnScope(tenant, turn), r)
	return f.ID, roomOf(err)
}

// roomOf is the gateway's error for what there is no room for.
func roomOf(err error) error {
	switch {
	case errors.Is(err, storage.ErrQuota):
		return gateway.ErrQuota
	case errors.Is(err, storage.ErrFull):
		return gateway.ErrNoRoom
	}
	return err
}

// Forget implements gateway.Artifacts.
func (k kept) Forget(ctx context.Context, tenant, turn string) error {
	return k.Wipe(ctx, storage.TurnScope(tenant, turn))
}

// Fetch implements gateway.Artifacts.
func (k kept) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	r, size, err := k.Blobs.Fetch(ctx, tenant, ref)
	if errors.Is(err, storage.ErrNotFound) {
		err = gateway.ErrNoArtifact
	}
	return r, size, err
}
