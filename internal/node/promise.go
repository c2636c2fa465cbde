package node

import (
	"context"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/health"
)

// checkPromise: every record that is older than what receipts promise has its
// leaf. Where one has not, the ledger was put back from an older copy, or could not
// write for so long: it stays as it is until an operator has looked, for its tree
// would vouch for whatever the journal says today.
func (n *Node) checkPromise(ctx context.Context) error {
	size := n.ledger.Size()
	if size >= n.journal.Next() {
		return nil
	}
	rec, err := n.journal.Get(ctx, size)
	if err != nil {
		return err
	}
	if n.directory.LastAt().Sub(rec.At) <= intents.PromiseSeconds*time.Second {
		return nil
	}
	n.raise(ctx, health.Condition{
		Name: conditionLedger, Blocks: true,
		Reason: fmt.Sprintf("the ledger ends before record %d, whose leaf was promised: it was put back from an older copy, or could not write", size),
		Do:     "put the ledger back that was; if it could not write and the journal is sound, on this machine: writ confirm ledger --data DIR",
	})
	return nil
}
