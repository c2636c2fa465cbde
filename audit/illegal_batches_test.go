package audit_test

import (
	"aob.dev/writ/intents"
)

// inBatch appends an intent, done, with its place in a batch.
func (d *dishonest) inBatch(tenant string, index int, offset int64, of int) int64 {
	d.Helper()
	o := d.finds("batched", "")
	o.Tenant = tenant
	return d.accepted(o, func(a *appended) { a.decision.Batch = &intents.BatchRef{Index: index, Offset: offset, Size: of} })
}

const (
	wholeBatch = "batches: all intents of a batch stand together"
	oneBatch   = "batches: its intents are of one tenant, in the order of the batch"
)

var batchMisdeeds = []misdeed{
	{"batch-torn", "batched", wholeBatch, "accepted with 3 intents", func(d *dishonest) int64 {
		d.inBatch("default", 0, 0, 3)
		d.inBatch("default", 1, 2, 3)
		return d.accepted(d.finds("alone", ""))
	}},
	{"batch-begun-again", "batched", wholeBatch, "accepted with 2 intents", func(d *dishonest) int64 {
		d.inBatch("default", 0, 0, 2)
		return d.inBatch("default", 0, 0, 2)
	}},
	{"batch-interrupted", "batched", wholeBatch, "accepted with 2 intents", func(d *dishonest) int64 {
		d.inBatch("default", 0, 0, 2)
		return d.control(map[string]any{"policy_digest": d.policyDigest()})
	}},
	{"batch-without-its-first", "batched", wholeBatch, "another number of intents", func(d *dishonest) int64 { return d.inBatch("default", 1, 2, 2) }},
	{"batch-of-another-size", "batched", wholeBatch, "another number of intents", func(d *dishonest) int64 {
		d.inBatch("default", 0, 0, 2)
		return d.inBatch("default", 1, 2, 3)
	}},
	{"batch-of-two-tenants", "batched", oneBatch, "not those before it", func(d *dishonest) int64 {
		d.inBatch("default", 0, 0, 2)
		return d.inBatch("acme", 1, 2, 2)
	}},
	{"batch-out-of-order", "batched", oneBatch, "not those before it", func(d *dishonest) int64 {
		d.inBatch("default", 1, 0, 2)
		return d.inBatch("default", 0, 2, 2)
	}},
}

// erased is a plan of each way to end, all of whose texts an operator has erased.
func (d *dishonest) erased() {
	d.Helper()
	for _, how := range []string{"complete", "failed", "cancel"} {
		plan, end := d.Tell("p_"+how, "anas-word", how)
		end()
		plan.Erase()
	}
	d.acme()
	d.operator = d.AddOperator("acme", "eve", "admin")
}
