package router

import (
	"context"

	"aob.dev/writ/intents"
)

// freshness is stage 4: issued_at + ttl_sec bounds acceptance, not the run.
func (r *Router) freshness(_ context.Context, d *decision) error {
	issued := d.env.IssuedAt()
	if issued.After(d.now.Add(intents.Leeway)) {
		return intents.Refuse(intents.NotYetValid, "/constraints/issued_at", "issued_at lies in the future")
	}
	if d.now.After(issued.Add(d.env.TTL()).Add(intents.Leeway)) {
		return intents.Refuse(intents.ExpiredTTL, "/constraints/ttl_sec", "the intent is older than its ttl_sec")
	}
	return nil
}
