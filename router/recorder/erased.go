package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// erased takes what an accepted record.erase names out of the documents that were made
// of the order before: out of its plan, at the position of the erasure, and, of an
// order of the router, out of its events; rows of a tool and lines of its log are removed. Other events, rows of calls and the search
// index never have values of an order. All of it is done to the documents as they
// are, since the state may have forgotten the plan, and comes out the same of a record
// that has lost its order.
func (r *Recorder) erased(ctx context.Context, s state.Order, rec storage.Record) error {
	if s.Type != state.TypeErase {
		return nil
	}
	var a catalog.RecordErase
	if err := json.Unmarshal(s.Args, &a); err != nil {
		return err
	}
	r.recent = [len(r.recent)]recent{} // it has other parts now
	of, err := r.order(ctx, a.Position)
	if err != nil {
		return err
	}
	if err := r.flush(ctx); err != nil { // what was gathered is looked for in the store
		return err
	}
	if err := errors.Join(r.eraseTools(ctx, of, a.Parts), r.eraseLines(ctx, of, a.Parts)); err != nil || !slices.Contains(a.Parts, catalog.ErasesOrder) {
		return err
	}
	routers := of.Decision.Verdict != intents.Deny && of.Decision.Executor == catalog.ExecutorRouter
	if routers {
		if err := r.eraseEvents(ctx, of); err != nil {
			return err
		}
	}
	return r.erasePlan(ctx, of, routers, rec)
}

// erasePlan writes the plan of an erased order anew: without any text, if the router
// carried the order out, else without the order's arguments.
func (r *Recorder) erasePlan(ctx context.Context, of state.Order, routers bool, rec storage.Record) error {
	doc, err := r.read(ctx, of.Tenant, storage.IndexPlans, r.planID(of))
	if err != nil || doc.Body == nil {
		return err
	}
	p := new(catalog.PlanView)
	if err := json.Unmarshal(doc.Body, p); err != nil {
		return err
	}
	if routers {
		state.RemoveTexts(p)
	}
	for i := range p.Facts {
		if f := &p.Facts[i]; f.IntentID == of.Decision.IntentID {
			f.Args = json.RawMessage(`{}`)
		}
	}
	r.writePlan(p, rec)
	return nil
}

// eraseEvents takes the reasons out of the events of an order.
func (r *Recorder) eraseEvents(ctx context.Context, of state.Order) error {
	for seq := 0; ; seq++ {
		id := eventID(of.Position, seq)
		doc, err := r.read(ctx, of.Tenant, storage.IndexEvents, id)
		if err != nil {
			return err
		}
		spare, err := r.read(ctx, of.Tenant, storage.IndexEvents, id+spareSuffix)
		if err != nil {
			return err
		}
		replaced := spare.Body != nil // as far as a crash let it
		if doc.Body == nil {
			doc = spare
		}
		if doc.Body == nil {
			return nil
		}
		had, err := withoutReasons(&doc)
		if err == nil && (had || replaced) {
			doc.ID = id
			err = r.patiently(ctx, storage.IndexEvents, func() error { return r.replace(ctx, of.Tenant, doc) })
		}
		if err != nil {
			return err
		}
	}
}

// withoutReasons says whether an event had texts, and takes them out of it.
func withoutReasons(doc *storage.Document) (had bool, err error) {
	var d eventDoc
	if err := json.Unmarshal(doc.Body, &d); err != nil {
		return false, err
	}
	payload, _ := d.Payload.(map[string]any)
	for _, name := range []string{"reason", "suggestion"} {
		if text, ok := payload[name].(string); ok && text != storage.ErasedReason {
			payload[name], had = storage.ErasedReason, true
		}
	}
	doc.Body, err = json.Marshal(d)
	return had, err
}

// spareSuffix is of the id of an event that is about to take the place of another.
const spareSuffix = "-erased"

// replace puts an event in the place of the one that has its id: events are created
// and removed, and never changed.
//
// Crash in it: at least one of the two is there, and the next round goes on.
func (r *Recorder) replace(ctx context.Context, tenant string, doc storage.Document) error {
	spare := doc
	spare.ID += spareSuffix
	if _, err := r.documents.Create(ctx, tenant, storage.IndexEvents, spare); err != nil {
		return err
	}
	if err := r.documents.Delete(ctx, tenant, storage.IndexEvents, doc.ID); err != nil {
		return err
	}
	if _, err := r.documents.Create(ctx, tenant, storage.IndexEvents, doc); err != nil {
		return err
	}
	return r.documents.Delete(ctx, tenant, storage.IndexEvents, spare.ID)
}

// read gives a document; without a body if there is none.
func (r *Recorder) read(ctx context.Context, tenant, index, id string) (doc storage.Document, err error) {
	if id == "" {
		return doc, nil
	}
	err = r.patiently(ctx, index, func() error {
		doc, err = r.documents.Get(ctx, tenant, index, id)
		if errors.Is(err, storage.ErrNotFound) {
			doc, err = storage.Document{}, nil
		}
		return err
	})
	return doc, err
}

// eventID is of the seq-th event of a record.
func eventID(position int64, seq int) string { return fmt.Sprintf("%012d-%02d", position, seq) }
