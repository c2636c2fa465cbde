package router

import (
	"sync"

	"aob.dev/writ/intents"
)

// How many batches are carried out at once, in all and of a tenant: a batch is large, and takes
// long. A tenant that has none may always have one.
const (
	maxBatches    = 64
	tenantBatches = 16
)

// batchSlots counts the batches that are carried out.
type batchSlots struct {
	mu sync.Mutex // guards what follows
	n  int
	of map[string]int // by tenant
}

// take one for a tenant, or refuse the batch.
func (s *batchSlots) take(tenant string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of[tenant]; own > 0 && (own >= tenantBatches || s.n >= maxBatches) {
		return intents.Refuse(intents.Overloaded, "", "too many batches are being carried out")
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.n++
	s.of[tenant]++
	return nil
}

func (s *batchSlots) give(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
	if s.of[tenant]--; s.of[tenant] == 0 {
		delete(s.of, tenant)
	}
}

// batch is one on its way.
type batch struct {
	raws   [][]byte
	slots  *batchSlots
	tenant string // for which it has a slot; empty: it has none
}

// enter takes a slot, once it is known whose batch it is: of orders that were decided.
func (b *batch) enter(orders []*order) error {
	if b.tenant != "" {
		return nil
	}
	tenant := orders[0].env.Principal().Tenant
	err := b.slots.take(tenant)
	if err == nil {
		b.tenant = tenant
	}
	return err
}

func (b *batch) leave() {
	if b.tenant != "" {
		b.slots.give(b.tenant)
	}
}
