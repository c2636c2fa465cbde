package node

import (
	"context"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// openStream opens the journal of the cell. For now it is in the process, until the one on
// JetStream is there.
func (n *Node) openStream(ctx context.Context) error {
	n.directory = state.New()
	j, err := sqlite.OpenJournal(ctx, datadir.Journal(n.cfg.Dir), sqlite.JournalOptions{
		Observer: func(e storage.Entry) {
			n.directory.Observe(e)
			n.wakers.wake()
		},
		OnFatal: n.journalFailed, OnDamage: n.journalDamaged, OnWrite: n.orders.Committed, Admit: n.admit,
	})
	if err != nil {
		return err
	}
	n.journal = j
	return n.began(ctx)
}
