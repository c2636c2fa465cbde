package node

import (
	"cmp"
	"context"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/quota"
	"aob.dev/writ/storage/sqlite"
)

// DefaultTenantDisk is how many bytes one tenant may hold.
const DefaultTenantDisk = 10 << 30

// bounded blobs leave room for orders, and for other tenants. What is uploaded
// stops at twice the floor of orders, so that those go on.
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
