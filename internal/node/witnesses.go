package node

import "aob.dev/writ/storage/ledger"

// Witness cosigns checkpoints of the log.
type Witness = ledger.Witness

// ParseWitness reads "<verifier key> <URL>".
func ParseWitness(s string) (Witness, error) { return ledger.ParseWitness(s) }

func (n *Node) witnesses() *ledger.Witnesses {
	return ledger.NewWitnesses(n.ledger.Reader, n.ledger.Keys, n.cfg.Log, n.cfg.Witnesses...)
}
