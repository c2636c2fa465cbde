package router

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// erasable says whether the order may be taken out of its record one day: nothing
// in the log rests on a refused one, nor on one that an executor carries out. Its
// summary stays in its place.
func (o *order) erasable() bool {
	return o.decision.Verdict == intents.Deny || o.row.Executor != catalog.ExecutorRouter
}

// readSummary reads what is left of an order that was erased.
func (o *decided) readSummary(r storage.Record) error {
	s, err := storage.ReadSummary(r.Parts)
	if err != nil {
		return err
	}
	b := s.Body()
	o.typ, o.args, o.user, o.tenant, o.ctx, o.erased = s.Type, b.Intent.Args, s.User, s.Tenant, s.Context, true
	return nil
}

// shownArgs are what drivers of the plan are told of the arguments.
func (o *decided) shownArgs() json.RawMessage {
	if o.erased {
		return json.RawMessage(`{}`)
	}
	return o.args
}
