package recorder

import (
	"context"
	"errors"
	"sync"

	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// maxBatch is how many records are projected together at most.
const maxBatch = 256

// writers is how many fenced writes are under way at once, so that a store can
// gather them.
const writers = 32

// batch is what a run of records makes, to be written together. A crash leaves
// any part of one batch written; projected goes back by a whole one.
type batch struct {
	records int
	next    int64                                    // position after its last record
	created map[string]map[string][]storage.Document // index and tenant to documents that never change
	plans   map[place]storage.Document               // as of the last record
	orders  map[place]storage.Document               // accepted ones
	refused map[place]bool                           // the first refusal of an intent is the one to keep
}

// place of a document.
type place struct{ tenant, id string }

func newBatch() *batch {
	return &batch{
		created: map[string]map[string][]storage.Document{storage.IndexEvents: {}, storage.IndexOrders: {}},
		plans:   map[place]storage.Document{}, orders: map[place]storage.Document{}, refused: map[place]bool{},
	}
}

func (b *batch) create(tenant, index string, docs ...storage.Document) {
	b.created[index][tenant] = append(b.created[index][tenant], docs...)
}

// refuse keeps the entry of a refused order, unless the batch has one before.
func (b *batch) refuse(tenant string, doc storage.Document) {
	if at := (place{tenant, doc.ID}); !b.refused[at] {
		b.refused[at] = true
		b.create(tenant, storage.IndexOrders, doc)
	}
}

// flush writes what was gathered: events, plans, and the search index last. An
// accepted order's entry is put after the refusals were created, as it takes
// the place of one.
func (r *Recorder) flush(ctx context.Context) error {
	b := r.batch
	if b.records == 0 {
		return nil
	}
	r.batch = newBatch()
	if err := r.createAll(ctx, storage.IndexEvents, b.created[storage.IndexEvents]); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecorderEvents)
	if err := r.putAll(ctx, storage.IndexPlans, b.plans); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecorderPlan)
	if err := r.createAll(ctx, storage.IndexOrders, b.created[storage.IndexOrders]); err != nil {
		return err
	}
	if err := r.putAll(ctx, storage.IndexOrders, b.orders); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecorderIndex)
	r.reach(b.next)
	failpoint.Hit(failpoint.RecorderReached)
	return nil
}

func (r *Recorder) createAll(ctx context.Context, index string, byTenant map[string][]storage.Document) error {
	for tenant, docs := range byTenant {
		if err := r.create(ctx, tenant, index, docs...); err != nil {
			return err
		}
	}
	return nil
}

// putAll puts documents of different ids, in no order.
func (r *Recorder) putAll(ctx context.Context, index string, docs map[place]storage.Document) error {
	var (
		running sync.WaitGroup
		mu      sync.Mutex // guards failed
		failed  error
	)
	free := make(chan struct{}, writers)
	for at, doc := range docs {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			if err := r.put(ctx, at.tenant, index, doc); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return failed
}
