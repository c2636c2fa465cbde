package audit

import "errors"

// inBatch is the batch that the records at hand are of.
type inBatch struct {
	known bool // false: what comes before is not in the bundle
	first int64
	index int
	// tenant of the batch; empty: no batch.
	tenant string
}

// takeBatch holds the orders of a batch together: they were accepted with one
// commit, so nothing but their own outcomes stands between them.
func (f *fold) takeBatch(it *item) error {
	before := f.batch
	if it.entry == nil || it.blind || it.position != f.next {
		before = inBatch{}
	}
	f.next = it.position + 1
	switch {
	case it.entry == nil || it.blind:
		f.batch = inBatch{}
		return nil
	case it.outcome != nil:
		f.batch = before
		return nil
	case it.order == nil || it.order.decision.Batch == nil:
		f.batch = inBatch{known: true}
		return nil
	}
	b, tenant := it.order.decision.Batch, it.order.body.Actor.Tenant
	f.batch = inBatch{true, it.position - b.Offset, b.Index, tenant}
	switch {
	case b.Offset == 0 && b.Index >= 0 || !before.known:
		return nil
	case before.tenant != tenant || before.first != f.batch.first || before.index >= b.Index:
		return errors.New("accepted in a batch whose other orders are not those before it")
	default:
		return nil
	}
}
