package node

import (
	"context"
	"errors"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// connector connects processes of roles: the server in this process, or a cluster.
type connector interface {
	Connect(ctx context.Context, role string) (bus.Conn, error)
}

// openKeys reads the keys of the roles. It makes none.
func (n *Node) openKeys(context.Context) (err error) {
	dirs := n.cfg.Cluster.Keys
	if n.published, err = cell.OpenPublished(dirs); err != nil {
		return err
	}
	n.trust = n.published
	signs := n.signers()
	if len(signs) == 0 {
		return nil
	}
	n.keys, err = keydir.OpenRing(func() (keydir.Signers, error) { return cell.ReadSigners(dirs) }, n.published, n.cfg.Log, signs...)
	return err
}

// joinCluster connects the process to the bus of its roles. A router creates the cell's streams and
// buckets there.
func (n *Node) joinCluster(ctx context.Context) error {
	n.bus = n.cfg.Cluster.Bus
	if !n.has(natsserver.Router) {
		return nil
	}
	core, err := n.connect(ctx, natsserver.Router)
	if err == nil {
		err = errors.Join(bus.EnsureFrames(ctx, core), bus.EnsureCell(ctx, core))
	}
	return err
}

// keySecret is what idempotency keys are made with: derived from the secret of tags, which routers of a
// cell do not have.
func (n *Node) keySecret() ([]byte, error) {
	if !n.standalone() {
		return cell.Secret(n.cfg.Cluster.Keys, cell.Idempotency)
	}
	tags, err := n.tagSecret()
	if err != nil {
		return nil, err
	}
	return storage.KeySecret(tags)
}

// tagSecret is the secret that tags of tenants are derived from.
func (n *Node) tagSecret() ([]byte, error) {
	if n.standalone() {
		return ledger.CreateSecret(datadir.Tags(n.cfg.Dir))
	}
	return cell.Secret(n.cfg.Cluster.Keys, cell.Tags)
}
