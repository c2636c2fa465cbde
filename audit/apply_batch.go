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
	size  int // intents
	count int // of these; 0: the first ones are not here
	// tenant of the batch; empty: no batch.
	tenant string
}

// whole: all intents of the batch are here if its first one is.
func (b inBatch) whole() error {
	if b.count == 0 || b.count == b.size {
		return nil
	}
	return fmt.Errorf("the batch before it was accepted with %d intents, and %d are here", b.size, b.count)
}

// takeBatch checks that the intents of a batch are adjacent: they were accepted with one
// commit, so only their own outcomes may be between them.
func (f *applier) takeBatch(it *item) error {
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
	case it.intent == nil || it.intent.decision.Batch == nil:
		f.batch = inBatch{known: true}
		return before.whole()
	}
	b, tenant := it.intent.decision.Batch, it.intent.body.Actor.Tenant
	f.batch = inBatch{known: true, first: it.Position - b.Offset, index: b.Index, size: b.Size, tenant: tenant}
	if before.count > 0 {
		f.batch.count = before.count + 1
	}
	switch {
	case b.Offset == 0 && b.Index >= 0:
		f.batch.count = 1
		return before.whole()
	case !before.known:
		return nil
	case before.size != b.Size:
		return errors.New("its batch has another number of intents than those before it say")
	case before.tenant != tenant || before.first != f.batch.first || before.index >= b.Index:
		return errors.New("accepted in a batch whose other intents are not those before it")
	default:
		return nil
	}
}
