package audit

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/storage/ledger"
)

// openCheckpoint verifies a checkpoint with the ledger keys for its size.
func (v *verifier) openCheckpoint(text string) (ledger.Checkpoint, error) {
	c, err := ledger.ReadCheckpoint(text)
	if err != nil {
		return c, err
	}
	return ledger.OpenCheckpoint(text, v.head.Origin, v.ledgerKeys(c.Size)...)
}

// ledgerKeys are the keys that may have signed a log of a size: those in force
// at its last record, and those that came later, since an old size may be signed
// again. A key that its records revoke, or leave out, may not sign it any more.
func (v *verifier) ledgerKeys(size int64) []intents.Key {
	var out []intents.Key
	before := map[string]bool{} // every key that the log of this size has had
	for i, set := range v.applier.sets {
		if set.at < size {
			for kid := range set.keys {
				before[kid] = true
			}
			if i+1 < len(v.applier.sets) && v.applier.sets[i+1].at < size {
				continue // not the last of them
			}
		}
		for kid, k := range set.keys {
			if k.Role == intents.RoleLedger && !k.Revoked && (set.at < size || !before[kid]) {
				out = append(out, k)
			}
		}
	}
	return out
}
