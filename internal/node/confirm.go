package node

import (
	"context"
	"log/slog"

	"aob.dev/writ/internal/datadir"
)

// takeConfirmed takes up what an operator has confirmed.
func (n *Node) takeConfirmed(ctx context.Context) {
	for _, name := range datadir.Confirmable {
		said, err := datadir.TakeConfirmed(n.cfg.Dir, name, n.cfg.Now())
		if said {
			n.confirmed(ctx, name)
		}
		if err != nil {
			n.cfg.Log.WarnContext(ctx, "not taken as confirmed", slog.String("condition", name), slog.String("error", err.Error()))
		}
	}
}

func (n *Node) confirmed(ctx context.Context, name string) {
	n.cfg.Log.WarnContext(ctx, "an operator has confirmed", slog.String("condition", name))
	if name == conditionClock && n.guard != nil {
		n.guard.Confirm()
	}
	if name == conditionWitness {
		n.overruled.Store(true)
	}
	n.clear(ctx, name)
	n.ledger.Wake()
}
