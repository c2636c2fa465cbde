package audit

import (
	"encoding/json"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// masked says that a policy has masked arguments of an order. A decision that
// cannot be read is masked rather than shown.
func masked(rec storage.Record) bool {
	if rec.Kind != storage.KindOrder {
		return false
	}
	var d intents.Decision
	if json.Unmarshal(rec.Parts[storage.PartDecision], &d) != nil {
		return true
	}
	return masks(d)
}

// masks says that a decision masks arguments.
func masks(d intents.Decision) bool {
	held := d.Hold != nil && slices.ContainsFunc(d.Hold.Rules, func(r intents.HoldRule) bool { return len(r.Mask) > 0 })
	return held || slices.ContainsFunc(d.Obligations, func(o intents.Obligation) bool { return o.Name == "mask" })
}

// withhold leaves of a part only its digest: that the record has it is known, and
// what it says is not.
func (e *Entry) withhold(rec storage.Record, part string) {
	if _, erased := rec.Erased[part]; erased {
		return
	}
	e.Parts[part] = Part{Digest: partDigest(rec.Salts[part], rec.Parts[part])}
}
