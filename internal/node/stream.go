package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// openStream opens the journal of the cell. A router makes its stream, and writes under the
// name of the process; a recorder reads alone.
func (n *Node) openStream(ctx context.Context) error {
	role, instance := natsserver.Recorder, ""
	if n.has(natsserver.Router) {
		// Another one at each start: what an earlier process of this name has left open is
		// a lost router's.
		role, instance = natsserver.Router, n.cfg.Cluster.Bus.Instance+"-"+strings.ToLower(rand.Text())
	}
	conn := n.conns[role]
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
func (n *Node) followStream(ctx context.Context, conn bus.Conn, instance string, snap *cellSnapshot) (err error) {
	n.journal, n.peers = nil, nil
	fold := &cellFold{State: state.New()}
	if snap != nil {
		if fold, err = snap.Fold(); err != nil {
			return err
		}
	}
	js, err := bus.JetStream(conn)
	if err != nil {
		return err
	}
	n.directory = fold.State
	j, err := jetstream.Open(ctx, js, jetstream.Options{
		Instance: instance, From: fold.Index,
		Observer: func(e storage.Entry) {
			n.directory.Observe(e)
			n.wakers.wake()
		},
		OnErased: func() { n.stored.erased.Store(true) },
		OnFatal:  n.journalFailed, OnWrite: n.orders.Committed, Admit: n.admit, Log: n.cfg.Log,
	})
	if err != nil {
		return err // not j: as an interface it would not be nil
	}
	n.journal = j
	if instance != "" {
		n.peers = jetstream.NewRouters(j)
	}
	return nil
}
