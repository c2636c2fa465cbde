package audit

import (
	"errors"
	"fmt"
)

// inBatch is the batch that the records at hand are of.
type inBatch struct {
	known bool // false: what comes before is not in the bundle
	first int64
	index int
	of    int // orders; 0: not recorded
	seen  int // of these; 0: the first ones are not here
	// tenant of the batch; empty: no batch.
	tenant string
}

// whole: all orders of the batch are here, where its first one is.
func (b inBatch) whole() error {
	if b.seen == 0 || b.of == 0 || b.seen == b.of {
		return nil
	}
	return fmt.Errorf("the batch before it was accepted with %d orders, and %d are here", b.of, b.seen)
}

// takeBatch holds the orders of a batch together: they were accepted with one
// commit, so nothing but their own outcomes stands between them.
func (f *fold) takeBatch(it *item) error {
	before := f.batch
	if it.bare || it.blind || it.Position != f.next {
		before = inBatch{}
	}
	f.next = it.Position + 1
	switch {
	case it.bare || it.blind:
		f.batch = inBatch{}
		return nil
	case it.outcome != nil:
		f.batch = before
		return nil
	case it.order == nil || it.order.decision.Batch == nil:
		f.batch = inBatch{known: true}
		return before.whole()
	}
	b, tenant := it.order.decision.Batch, it.order.body.Actor.Tenant
	f.batch = inBatch{known: true, first: it.Position - b.Offset, index: b.Index, of: b.Of, tenant: tenant}
	if before.seen > 0 {
		f.batch.seen = before.seen + 1
	}
	switch {
	case b.Offset == 0 && b.Index >= 0:
		f.batch.seen = 1
		return before.whole()
	case !before.known:
		return nil
	case before.of != b.Of:
		return errors.New("its batch has another number of orders than those before it say")
	case before.tenant != tenant || before.first != f.batch.first || before.index >= b.Index:
		return errors.New("accepted in a batch whose other orders are not those before it")
	default:
		return nil
	}
}
