package node

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"

	"aob.dev/writ/cell"
	"aob.dev/writ/gateway"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/quota"
	"aob.dev/writ/storage/sqlite"
)

// DefaultTenantDisk is the number of bytes that one tenant may store.
const DefaultTenantDisk = 10 << 30

// bounded blobs leave room for intents and for other tenants. Uploads stop at twice the free disk
// minimum for intents.
func (n *Node) bounded(of quota.Store) *quota.Blobs {
	l := quota.Limits{
		Free:  func() (int64, error) { return sqlite.Free(n.cfg.Dir) },
		Floor: 2 * cmp.Or(n.cfg.Limits.FreeFloor, sqlite.DefaultFreeFloor), Tenant: cmp.Or(n.cfg.Limits.TenantDisk, DefaultTenantDisk),
		Exempt: ledger.SystemTenant,
	}
	return quota.New(of, l)
}

func (n *Node) openBlobs(ctx context.Context) error {
	at, err := n.cfg.Blobs.Place(n.cfg.Dir)
	if err != nil {
		return err
	}
	held, err := datadir.PlaceOf(n.cfg.Dir)
	if err != nil {
		return err
	}
	opened, err := at.Open(ctx, n.cfg.Dir)
	if err != nil {
		return err
	}
	n.blobs = n.bounded(opened)
	if at == held {
		return nil
	}
	return at.Remember(n.cfg.Dir)
}

// links is the key of links to artifacts. The executor makes them and the gateway opens
// them.
func (n *Node) links() (gateway.Links, error) {
	if !n.standalone() {
		key, err := cell.Secret(n.cfg.Cluster.Keys, cell.Links)
		return gateway.Links{Key: key}, err
	}
	secret, err := ledger.CreateSecret(datadir.Tags(n.cfg.Dir))
	if err != nil {
		return gateway.Links{}, err
	}
	key, err := gateway.LinkKey(secret)
	return gateway.Links{Key: key}, err
}

// nodeBlobs is the node's blobs as the gateway uses them.
type nodeBlobs struct{ *quota.Blobs }

// Room implements gateway.Artifacts. An artifact is there twice for a moment: as it was
// received, and in its final place.
func (k nodeBlobs) Room(ctx context.Context, tenant string, bytes int64) error {
	return roomOf(k.Blobs.Room(ctx, tenant, 2*bytes))
}

// Receive implements gateway.Artifacts: as a temporary file of the turn.
func (k nodeBlobs) Receive(ctx context.Context, tenant, turn string, r io.Reader) (string, error) {
	f, err := k.Put(ctx, storage.TurnScope(tenant, turn), r)
	return f.ID, roomOf(err)
}

// roomOf is the gateway's error for a blob that has no room.
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
func (k nodeBlobs) Forget(ctx context.Context, tenant, turn string) error {
	return k.Wipe(ctx, storage.TurnScope(tenant, turn))
}

// Fetch implements gateway.Artifacts.
func (k nodeBlobs) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	r, size, err := k.Blobs.Fetch(ctx, tenant, ref)
	if errors.Is(err, storage.ErrNotFound) {
		err = gateway.ErrNoArtifact
	}
	return r, size, err
}

// holdingsFile is the index of which tenants have which blobs. It is rebuilt if it is missing.
func holdingsFile(data string) string { return filepath.Join(data, "holdings.db") }

func (n *Node) openHoldings(ctx context.Context) error {
	store, err := sqlite.OpenHoldings(ctx, holdingsFile(n.cfg.Dir))
	if err != nil {
		return err
	}
	n.holdingStore = store
	n.holdings = router.NewHoldings(n.journal, store, n.cfg.Log)
	n.followers.Add(n.holdings.Progress)
	return nil
}
