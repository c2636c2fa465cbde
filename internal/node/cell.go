package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
	"aob.dev/writ/storage/ledger"
)

// errNotBegun reports that a cell has keys and no log.
var errNotBegun = errors.New("the log of the cell has not begun: writ admin cell begin begins it")

// began makes sure that the log has begun, and is the one that the keys are for.
func (n *Node) began(ctx context.Context) error {
	if n.has(natsserver.Router) {
		if err := n.keepVersions(ctx, n.policy.Engine()); err != nil {
			return err
		}
	}
	if n.journal.Next() == 0 {
		if n.cfg.Cluster.genesis == "" {
			return errNotBegun
		}
		if err := router.Begin(ctx, n.journal, n.cfg.Cluster.genesis, n.cfg.Now()); err != nil {
			return err
		}
	}
	if err := n.directory.Err(); err != nil {
		return err
	}
	if is, want := n.directory.Origin(), n.Origin(); is != want {
		return fmt.Errorf("keys: they are of the log %s, and the cell's is %s", want, is)
	}
	return nil
}

// BeginCell begins the log of a cell, has the first API key made and returns it. It acts as a
// router meanwhile. If the log has begun and has an API key, the key is empty.
//
// Crash: committed records stay, and the same call continues after them.
func BeginCell(ctx context.Context, cfg Config, dir string) (key string, err error) {
	genesis, err := cell.Genesis(dir)
	if err != nil {
		return "", err
	}
	n, stop, err := operate(ctx, cfg, dir, genesis)
	if err != nil {
		return "", err
	}
	err = n.firstKey(ctx)
	return n.APIKey, errors.Join(err, stop())
}

// operate is a router of the cell whose keys are in a directory, with the operator's key, for a moment.
func operate(ctx context.Context, cfg Config, dir, genesis string) (*Node, func() error, error) {
	cluster := *cfg.Cluster
	cluster.Roles, cluster.operates, cluster.genesis = []string{natsserver.Router}, true, genesis
	cluster.Keys = []string{cell.Keys(dir, natsserver.Router), cell.Keys(dir, string(intents.RoleOperator))}
	cfg.Cluster, cfg.Listen, cfg.Metrics = &cluster, "", ""
	return Start(ctx, cfg)
}

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

// openStream opens the journal of the cell. A router makes its stream, and writes under the
// name of the process; a recorder reads alone.
func (n *Node) openStream(ctx context.Context) error {
	role, instance := natsserver.Recorder, ""
	if n.has(natsserver.Router) {
		// A new one at each start: an earlier process of this name is another router.
		role, instance = natsserver.Router, n.cfg.Cluster.Bus.Instance+"-"+strings.ToLower(rand.Text())
	}
	conn := n.conns.of(role)
	if conn == nil {
		var err error
		if conn, err = n.connect(ctx, role); err != nil {
			return err
		}
	}
	js, err := bus.JetStream(conn)
	if err != nil {
		return err
	}
	if instance != "" {
		if err := jetstream.Create(ctx, js, bus.Replicas(conn)); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	if err := n.openCellJournal(ctx, conn, instance); err != nil {
		return err
	}
	return n.began(ctx)
}

// followStream opens the journal; snap may be nil.
func (n *Node) followStream(ctx context.Context, conn bus.Conn, instance string, snap *snapshot.CellSnapshot) (_ snapshot.Journal, _ *state.State, err error) {
	n.forgetFailure()
	n.journal, n.stream = nil, nil
	contents, err := snap.Contents()
	if err != nil {
		return nil, nil, err
	}
	js, err := bus.JetStream(conn)
	if err != nil {
		return nil, nil, err
	}
	n.directory = contents.State
	j, err := jetstream.Open(ctx, js, jetstream.Options{
		Instance: instance, From: contents.Index,
		Observer: func(e storage.Entry) {
			n.directory.Observe(e)
			n.followers.Wake()
		},
		OnErased: func() { n.stored.Erased.Store(true) },
		OnFatal:  n.journalFailed, OnWrite: n.intents.Committed, Admit: n.admit, Log: n.cfg.Log,
	})
	if err != nil {
		return nil, nil, err // not j: as an interface it would not be nil
	}
	n.journal = j
	n.stream = j
	return j, n.directory, nil
}
