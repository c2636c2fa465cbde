package node

import (
	"context"
	"log/slog"
	"time"

	"aob.dev/writ/internal/health"
	"aob.dev/writ/storage/ledger"
)

// Witness cosigns checkpoints of the log.
type Witness = ledger.Witness

// ParseWitness reads "<verifier key> <URL>".
func ParseWitness(s string) (Witness, error) { return ledger.ParseWitness(s) }

func (n *Node) witnesses() *ledger.Witnesses {
	w := ledger.NewWitnesses(n.ledger.Reader, n.ledger.Keys, n.cfg.Log, n.cfg.Witnesses...)
	w.Contradicted = n.contradicted
	return w
}

// witnessesFirst is how long a start waits for witnesses. One that does not answer
// by then is heard later.
const witnessesFirst = 5 * time.Second

// askWitnesses has every witness look at the log before anything is written to it:
// one that was put back from an older copy would become a second log under one name.
func (n *Node) askWitnesses(ctx context.Context) {
	if len(n.cfg.Witnesses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, witnessesFirst)
	defer cancel()
	n.witnesses().Once(ctx)
}

// contradicted keeps orders from being taken, and leaves from being appended, until
// an operator has looked; once he has, this process believes its own log.
func (n *Node) contradicted(witness string, err error) {
	if n.overruled.Load() {
		return
	}
	n.cfg.Log.Error("a witness contradicts the log", slog.String("witness", witness), slog.String("error", err.Error()))
	n.raise(context.Background(), health.Condition{
		Name: conditionWitness, Blocks: true,
		Reason: "a witness has seen more of the log than there is here, or another one: the data directory was put back from an older copy, or the witness lies",
		Do:     "put the newer copy back, or begin a new log; to go on with this one all the same, on this machine: writ confirm witness --data DIR",
	})
}
