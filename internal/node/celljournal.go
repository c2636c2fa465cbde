package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

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
	contents := &snapshot.CellContents{State: state.New()}
	if snap != nil {
		if contents, err = snap.Contents(); err != nil {
			return nil, nil, err
		}
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
