package router

import (
	"sync"

	"aob.dev/writ/intents"
)

// slots bound what is carried out at once: in all, and of a tenant at most. Every tenant has the
// least, even where the others have taken all.
type slots struct {
	all, most, least int

	mu sync.Mutex // guards what follows
	n  int
	of map[string]int // by tenant
}

// newSlots are those of orders. One tenant may have all.
func newSlots(all int) *slots {
	return &slots{all: all, most: all, least: max(1, all/16), of: map[string]int{}}
}

// newBatchSlots are those of batches, which are large and take long.
func newBatchSlots() *slots { return &slots{all: 64, most: 16, least: 1, of: map[string]int{}} }

// take one for a tenant, or refuse what it is for.
func (s *slots) take(tenant, what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of[tenant]; own >= s.least && (own >= s.most || s.n >= s.all) {
		return intents.Refuse(intents.Overloaded, "", "too many "+what+" are being carried out")
	}
	s.n++
	s.of[tenant]++
	return nil
}

func (s *slots) give(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
	if s.of[tenant]--; s.of[tenant] == 0 {
		delete(s.of, tenant)
	}
}

// taken says how many are.
func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// batch is one on its way.
type batch struct {
	raws   [][]byte
	slots  *slots
	tenant string // for which it has a slot; empty: it has none
}

// enter takes a slot, once it is known whose batch it is: of orders that were decided.
func (b *batch) enter(orders []*order) error {
	if b.tenant != "" {
		return nil
	}
	tenant := orders[0].env.Principal().Tenant
	err := b.slots.take(tenant, "batches")
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
