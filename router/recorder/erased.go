package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// erased writes anew, at the position of an accepted record.erase, the plan that
// had the order's arguments. Events, rows of calls and the search index never have
// values of an order: they stay as they are, and come out the same of a record
// that has lost its order.
func (r *Recorder) erased(ctx context.Context, s state.Order, rec storage.Record) error {
	if s.Type != "record.erase" {
		return nil
	}
	var a catalog.RecordErase
	if err := json.Unmarshal(s.Args, &a); err != nil {
		return err
	}
	order, err := r.records.Get(ctx, a.Position)
	if err != nil {
		return err
	}
	of, err := state.ReadOrder(order)
	if err != nil {
		return err
	}
	p, err := r.told(ctx, of.Tenant, planID(of))
	if err == nil && p == nil {
		p, err = r.stored(ctx, of.Tenant, planID(of))
	}
	if err != nil || p == nil {
		return err
	}
	for i := range p.Facts {
		if p.Facts[i].IntentID == a.IntentID && slices.Contains(a.Parts, catalog.ErasesOrder) {
			p.Facts[i].Args = json.RawMessage(`{}`)
		}
	}
	return r.writePlan(p, rec)
}

// stored is a plan that has left the state, as its document tells it; nil: there is none.
func (r *Recorder) stored(ctx context.Context, tenant, id string) (*catalog.PlanView, error) {
	if id == "" {
		return nil, nil //nolint:nilnil // most orders belong to none
	}
	doc, gathered := r.batch.plans[place{tenant, id}]
	found := gathered
	if !gathered {
		err := r.patiently(ctx, storage.IndexPlans, func() (err error) {
			doc, err = r.documents.Get(ctx, tenant, storage.IndexPlans, id)
			if found = err == nil; errors.Is(err, storage.ErrNotFound) { // its time is over
				return nil
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, nil //nolint:nilnil // nothing is to be written anew
	}
	p := new(catalog.PlanView)
	return p, json.Unmarshal(doc.Body, p)
}
