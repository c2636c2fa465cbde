package audit

import (
	"fmt"

	"aob.dev/writ/storage/ledger"
)

// cosigned holds the header's cosigned checkpoint to the last one. By whom it is
// cosigned is checked at the end, when the log's keys are known.
func (v *verifier) cosigned() {
	h := v.head
	if h.Cosigned == "" {
		return
	}
	c, err := ledger.ReadCheckpoint(h.Cosigned)
	switch {
	case err != nil || c.Origin != h.Origin:
		v.fail(-1, "", "the cosigned checkpoint cannot be read, or is another log's")
	case c.Size > v.last.Size:
		v.fail(-1, "", fmt.Sprintf("the log is older than a checkpoint of %d records that was cosigned: it ends at %d, and was put back or cut off", c.Size, v.last.Size))
	case ledger.VerifyConsistency(c, v.last, h.Way) != nil:
		v.fail(-1, "", "the log of the last checkpoint is no continuation of what witnesses have cosigned: something was changed or cut off")
	}
}

// witnessed reports how far the pinned witnesses confirm the log: that there is one
// for everybody. Without pinned witnesses nothing is confirmed.
func (v *verifier) witnessed() {
	t := v.opts.Trust
	if t == nil || len(t.witnesses) == 0 || v.head.Cosigned == "" {
		return
	}
	c, err := v.openCheckpoint(v.head.Cosigned)
	if err != nil {
		v.fail(-1, "", "the cosigned checkpoint is not signed by a ledger key of the key set")
		return
	}
	names := ledger.Cosigners(v.head.Cosigned, t.witnesses...)
	quorum := t.Quorum
	if quorum == 0 {
		quorum = len(t.witnesses)
	}
	if len(names) < quorum {
		return
	}
	v.report.WitnessedBy, v.report.WitnessedSize = names, c.Size
}
