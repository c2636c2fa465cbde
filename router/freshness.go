package router

import (
	"context"

	"aob.dev/writ/intents"
)

// freshness is stage 4: issued_at + ttl_sec bounds acceptance, not the run.
func (r *Router) freshness(_ context.Context, o *order) error {
	issued := o.env.IssuedAt()
	if issued.After(o.now.Add(intents.Leeway)) {
		return intents.Refuse(intents.NotYetValid, "/constraints/issued_at", "issued_at lies in the future")
	}
	if o.now.After(issued.Add(o.env.TTL()).Add(intents.Leeway)) {
		return intents.Refuse(intents.ExpiredTTL, "/constraints/ttl_sec", "the order is older than its ttl_sec")
	}
	return nil
}
