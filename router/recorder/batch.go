package recorder

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// maxBatch is how many records are projected together at most.
const maxBatch = 256

// batch holds the documents of several records, to be written together: per index and tenant in one
// call. A crash leaves any of the calls written, and in a store without transactions any part of
// one; those of the search index come after all others. Projected goes back by a whole batch.
type batch struct {
	records  int
	next     int64 // position after its last record
	events   projections
	public   []bus.Event                // of these, for other systems
	calls    projections                // of skills
	messages projections                // of tools
	plans    map[place]planAt           // as of the last record
	agents   map[place]storage.Document // likewise
	intents  map[place]storage.Document // accepted ones
	refused  map[place]storage.Document // the first refusal of an intent is retained
}

// projections of an index, by tenant.
type projections map[string]*storage.Projection

func (p projections) get(tenant string) *storage.Projection {
	if p[tenant] == nil {
		p[tenant] = &storage.Projection{}
	}
	return p[tenant]
}

func (p projections) create(tenant string, docs ...storage.Document) {
	of := p.get(tenant)
	of.Created = append(of.Created, docs...)
}

// place of a document.
type place struct{ tenant, id string }

func newBatch() *batch {
	return &batch{
		events: projections{}, calls: projections{}, messages: projections{}, plans: map[place]planAt{}, agents: map[place]storage.Document{},
		intents: map[place]storage.Document{}, refused: map[place]storage.Document{},
	}
}

// refuse adds the entry of a refused intent, unless the batch has an earlier one.
func (b *batch) refuse(at place, doc storage.Document) {
	if _, ok := b.refused[at]; !ok {
		b.refused[at] = doc
	}
}

// flush writes the batch: events, calls of skills and tools, plans and agents, and after them the
// search index.
func (r *Recorder) flush(ctx context.Context) error {
	b := r.batch
	if b.records == 0 {
		return nil
	}
	r.batch = newBatch()
	plans, err := r.planDocuments(ctx, b.plans)
	if err != nil {
		return err
	}
	for at := range b.intents {
		delete(b.refused, at) // the accepted one is the one to find
	}
	// Together, so that a store with transactions writes them in one.
	if err := r.together(ctx, map[string]projections{
		storage.IndexEvents: b.events, storage.IndexSkillCalls: b.calls, storage.IndexMessages: b.messages,
		storage.IndexPlans: byTenant(plans, nil), storage.IndexSchemas: byTenant(b.agents, nil),
	}); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecorderDocuments)
	if err := r.together(ctx, map[string]projections{storage.IndexIntents: byTenant(b.intents, b.refused)}); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RecorderIndex)
	if err := r.scrub(ctx); err != nil {
		return err
	}
	r.Move(b.next)
	if len(b.public) > 0 {
		r.Publish(b.public)
	}
	failpoint.Hit(failpoint.RecorderReached)
	return nil
}

// scrub has the words that erasures have removed leave the store's files, too.
func (r *Recorder) scrub(ctx context.Context) error {
	store, can := r.documents.(storage.Scrubber)
	if !can || !r.residue {
		return nil
	}
	r.residue = false
	return r.patiently(ctx, storage.IndexPlans, func() error { return store.Scrub(ctx) })
}

// byTenant groups documents by tenant, in order of their positions.
func byTenant(put, created map[place]storage.Document) projections {
	out := projections{}
	for at, doc := range put {
		p := out.get(at.tenant)
		p.Put = append(p.Put, doc)
	}
	for at, doc := range created {
		out.create(at.tenant, doc)
	}
	older := func(a, b storage.Document) int { return cmp.Compare(a.Position, b.Position) }
	for _, p := range out {
		slices.SortFunc(p.Put, older)
		slices.SortFunc(p.Created, older)
	}
	return out
}

// sideBySide is how many projections are written at a time.
const sideBySide = 8

// together writes the projections of indices that do not depend on one another.
func (r *Recorder) together(ctx context.Context, indices map[string]projections) error {
	writing, ctx := errgroup.WithContext(ctx)
	writing.SetLimit(sideBySide)
	for index, tenants := range indices {
		for tenant, docs := range tenants {
			writing.Go(func() error { return r.project(ctx, tenant, index, *docs) })
		}
	}
	return writing.Wait()
}

// project writes with retries.
func (r *Recorder) project(ctx context.Context, tenant, index string, docs storage.Projection) error {
	if r.RemovedBefore != nil {
		before := r.RemovedBefore(tenant, index)
		docs.Put, docs.Created = storage.Younger(index, docs.Put, before), storage.Younger(index, docs.Created, before)
	}
	err := r.patiently(ctx, index, func() error { return r.documents.Project(ctx, tenant, index, docs) })
	if errors.As(err, new(*storage.SchemaError)) {
		return r.each(ctx, tenant, index, docs)
	}
	return err
}
