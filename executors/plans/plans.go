// Package plans gives agents the plans that they work on: the documents of agent_plans, which the
// recorder alone writes. A plan of another user is reported as missing.
package plans

import (
	"context"
	"encoding/json"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/views"
)

// Name of the executor.
const Name = "plans"

// Handlers of the executor. They have no state.
func Handlers(docs storage.Documents) map[string]executors.Handler {
	return map[string]executors.Handler{"plan.get": executors.WithArgs(plans{docs}.get), "transcript.get": transcript}
}

// transcript gives the calls that the router put into the ticket.
func transcript(_ context.Context, o *executors.Intent) (*executors.Result, error) {
	in, ok := o.Input("/calls")
	if !ok {
		return nil, executors.Fail(intents.MalformedArgs, "the ticket has no calls")
	}
	var out catalog.TranscriptGetResult
	if err := json.Unmarshal(in.Value, &out.Calls); err != nil {
		return nil, executors.Fail(intents.ExecutorFailed, "the ticket's calls cannot be read")
	}
	return &executors.Result{Value: out}, nil
}

type plans struct{ docs storage.Documents }

// get reads one plan.
func (p plans) get(ctx context.Context, o *executors.Intent, args catalog.PlanGet) (*executors.Result, error) {
	view, err := views.Plan(ctx, p.docs, o.Ticket.Actor.Tenant, args.PlanID)
	if err == nil && view.UserID != o.Ticket.Actor.UserID {
		err = storage.ErrNotFound
	}
	return &executors.Result{Value: catalog.PlanGetResult{Plan: view}}, executors.Store(err)
}
