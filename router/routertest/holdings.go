package routertest

import (
	"context"
	"slices"
	"sync"

	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// Holdings keeps in memory who holds which blobs.
type Holdings struct {
	mu     sync.Mutex
	next   int64
	last   string
	held   map[storage.Holding]bool
	wanted map[int64][]string
}

var _ router.HoldingStore = (*Holdings)(nil)

// NewHoldings is empty.
func NewHoldings() *Holdings {
	return &Holdings{held: map[storage.Holding]bool{}, wanted: map[int64][]string{}}
}

// Next implements router.HoldingStore.
func (h *Holdings) Next(context.Context) (int64, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next, h.last, nil
}

// Put implements router.HoldingStore.
func (h *Holdings) Put(_ context.Context, next int64, last string, held []storage.Holding) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next, h.last = next, last
	for _, x := range held {
		h.held[x] = true
	}
	return nil
}

// Clear implements router.HoldingStore.
func (h *Holdings) Clear(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next, h.last = 0, ""
	clear(h.held)
	clear(h.wanted)
	return nil
}

// Of implements router.HoldingStore.
func (h *Holdings) Of(_ context.Context, tenant, digest string) ([]int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []int64
	for x := range h.held {
		if x.Tenant == tenant && x.Digest == digest {
			out = append(out, x.Position)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Want implements router.HoldingStore.
func (h *Holdings) Want(_ context.Context, position int64, digests []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted[position] = digests
	return nil
}

// Wanted implements router.HoldingStore.
func (h *Holdings) Wanted(_ context.Context, position int64) ([]string, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, known := h.wanted[position]
	return d, known, nil
}
