package node

import (
	"context"
	"log/slog"

	"aob.dev/writ/internal/health"
	"aob.dev/writ/storage/sqlite"
)

// keysLost reports that erasable parts cannot be read, although nobody erased them. They read as
// erased; everything else works.
func (n *Node) keysLost(err error) {
	n.cfg.Log.Error("keys of erasable parts are lost", slog.String("error", err.Error()))
	n.health.Raise(health.Condition{
		Name: conditionKeys, Reason: "keys of erasable parts are missing or changed: those parts of the journal cannot be read",
		Do: "stop writ, put the newest files of " + sqlite.KeysName + "/ back, and check: writ audit fsck --data DIR",
	})
}

// lookErasures checks whether the router waits for erasures to be signed again.
func (n *Node) lookErasures(ctx context.Context) {
	reason, do := n.router.Unexplained()
	if reason == "" {
		n.clear(ctx, conditionErasures)
		return
	}
	n.raise(ctx, health.Condition{Name: conditionErasures, Blocks: true, Reason: reason, Do: do})
}
