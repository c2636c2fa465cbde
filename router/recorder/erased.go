package recorder

import (
	"context"
	"encoding/json"

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
	return r.writePlanOf(ctx, of.Tenant, planID(of), rec)
}
