package node

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"aob.dev/writ/gateway"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/quota"
	"aob.dev/writ/storage/sqlite"
)

// DefaultTenantDisk is how many bytes one tenant may hold.
const DefaultTenantDisk = 10 << 30

// bounded blobs leave room for orders and for other tenants. Uploads stop at twice the
// minimum of free disk at which orders stop.
func (n *Node) bounded(of quota.Store) *quota.Blobs {
	l := quota.Limits{
		Free:  func() (int64, error) { return sqlite.Free(n.cfg.Dir) },
		Floor: 2 * cmp.Or(n.cfg.Limits.FreeFloor, sqlite.DefaultFreeFloor), Tenant: cmp.Or(n.cfg.Limits.TenantDisk, DefaultTenantDisk),
		Exempt: ledger.SystemTenant,
	}
	return quota.New(of, l)
}

func (n *Node) openBlobs(ctx context.Context) error {
	at, err := n.cfg.Blobs.Of(n.cfg.Dir)
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

// linkKeyInfo separates the key of links from the tag keys of tenants. Both are derived
// from the secret of the data directory.
const linkKeyInfo = "writ artifact link key v1\n"

// links is the key of links to artifacts. The executor makes them and the gateway opens
// them.
func (n *Node) links() (gateway.Links, error) {
	if !n.alone() {
		key, err := n.givenSecret(linksName)
		return gateway.Links{Key: key}, err
	}
	secret, err := ledger.CreateSecret(datadir.Tags(n.cfg.Dir))
	if err != nil {
		return gateway.Links{}, err
	}
	key, err := linkKey(secret)
	return gateway.Links{Key: key}, err
}

func linkKey(secret []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, linkKeyInfo, sha256.Size)
}

// kept is the node's blobs as the gateway uses them.
type kept struct{ *quota.Blobs }

// Room implements gateway.Artifacts. An artifact is there twice for a moment: as it was
// received, and in its final place.
func (k kept) Room(ctx context.Context, tenant string, bytes int64) error {
	return roomOf(k.Blobs.Room(ctx, tenant, 2*bytes))
}

// Receive implements gateway.Artifacts: as a temporary file of the turn.
func (k kept) Receive(ctx context.Context, tenant, turn string, r io.Reader) (string, error) {
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

// holdingsFile is the index of who holds which blobs. It is rebuilt if it is missing.
func holdingsFile(data string) string { return filepath.Join(data, "holdings.db") }

func (n *Node) openHoldings(ctx context.Context) error {
	store, err := sqlite.OpenHoldings(ctx, holdingsFile(n.cfg.Dir))
	if err != nil {
		return err
	}
	n.holdingStore = store
	n.holdings = router.NewHoldings(n.journal, store, n.cfg.Log)
	n.wakers.add(n.holdings.Progress)
	return nil
}

// remembered says whether a memory of a tenant names a blob. Expired memories count for
// nothing.
func (n *Node) remembered(ctx context.Context, tenant, digest string) (bool, error) {
	if r, lags := n.documents.(storage.Refresher); lags {
		if err := r.Refresh(ctx, storage.IndexMemory); err != nil {
			return false, err
		}
	}
	q := storage.Query{Text: strings.TrimPrefix(digest, "sha256:"), Limit: 1000, Now: intents.FormatTime(n.cfg.Now())}
	for {
		page, err := n.documents.Search(ctx, tenant, storage.IndexMemory, q)
		if err != nil {
			return false, err
		}
		for _, doc := range page.Documents {
			if strings.Contains(string(doc.Body), "cas://"+digest) {
				return true, nil
			}
		}
		if q.After = page.Cursor; q.After == "" {
			return false, nil
		}
	}
}
