package router

import (
	"context"
	"encoding/json"
	"log/slog"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// readRun reads what a run.replay keeps of the run that it repeats: the state has dropped its values. What is
// missing of it was erased, and nodes that need it fail.
func (r *Router) readRun(ctx context.Context, o *order, so *state.Order) error {
	if o.env.Type() != state.TypeRunReplay {
		return nil
	}
	a, err := argsOf[catalog.RunReplay](o.env)
	if err != nil {
		return err
	}
	src, err := o.view.Replayed(*so, a)
	if err != nil {
		return err
	}
	rec, err := r.cfg.Records.Get(ctx, src.Start)
	if err != nil {
		return err
	}
	start, err := state.ReadOrder(rec)
	if err != nil {
		return err
	}
	if start.Erased || src.Graph == nil {
		return nil // the state refuses it
	}
	var args catalog.WorkflowStart
	if err := json.Unmarshal(start.Args, &args); err != nil {
		return err
	}
	so.Replay = &state.Replay{Inputs: args.Inputs, Outputs: make(map[string]json.RawMessage)}
	for node, position := range src.Nodes {
		out, err := r.outputsAt(ctx, src, node, position)
		if err != nil {
			return err
		}
		if out != nil {
			so.Replay.Outputs[node] = out
		}
	}
	o.replay = so.Replay
	return nil
}

// outputsAt are the outputs of a node whose order is at a position; nil: they were erased.
func (r *Router) outputsAt(ctx context.Context, src state.Source, node string, position int64) (json.RawMessage, error) {
	rec, err := r.cfg.Records.Get(ctx, position)
	if err != nil {
		return nil, err
	}
	of, err := state.ReadOrder(rec)
	if err != nil {
		return nil, err
	}
	if of.Type == state.TypeStepFinish { // what an agent has said
		if of.Erased {
			return nil, nil
		}
		return state.Said(src.Graph, node, of)
	}
	rec, err = r.outcomeRecord(ctx, position)
	if err != nil {
		return nil, err
	}
	out, err := rec.Outcome()
	if err == nil && out.Status == intents.StatusIndetermined { // an operator has said that it is done
		return src.Graph.Cut(node, nil, true), nil
	}
	return rec.Parts[storage.PartOutputs], err
}

func (r *Router) outcomeRecord(ctx context.Context, position int64) (storage.Record, error) {
	h, err := r.cfg.Journal.Holder(ctx, position)
	if err != nil {
		return storage.Record{}, err
	}
	return r.cfg.Records.Get(ctx, h.Outcome)
}

// mayAct refuses, of a replay, all that executors carry out and that has effects.
func (r *Router) mayAct(o *order) error {
	if o.row.Executor == catalog.ExecutorRouter || o.onlyDecided() {
		return nil
	}
	return o.view.MayAct(o.env.Principal().Tenant, o.env.Context().PlanID, o.decision.Effect)
}

// onlyDecided says whether the order is decided and never accepted: it is that of a node of a shadow, of
// which nothing is recorded.
func (o *order) onlyDecided() bool { return o.ofNode() && o.task.DryRun }

// shadowHeld is what a shadow says of an order that a dry run would hold.
const shadowHeld = "writ.replay.held"

// dryRun is the refusal of an order that is decided and never accepted.
func dryRun(res policies.Result) error {
	x := res.Refusal()
	switch {
	case x == nil:
		x = intents.Refuse(intents.TaskScope, "", "a replay sends nothing: a dry run allows the order")
		x.PolicyIDs = []string{intents.RuleReplayAllowed}
	case x.Code == intents.ApprovalRequired:
		ids := append([]string{shadowHeld}, x.PolicyIDs...)
		x = intents.Refuse(intents.TaskScope, "", "a replay sends nothing: a dry run holds the order for approval")
		x.PolicyIDs = ids
	}
	return x
}

// compared says where the result of a node of a freeze differs from the recorded one: by path and digests, never by
// value.
func (r *Router) compared(ctx context.Context, o *order, result json.RawMessage) []intents.Fact {
	if o.task.Compare == 0 {
		return nil
	}
	rec, err := r.outcomeRecord(ctx, o.task.Compare)
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "the recorded outcome of a node cannot be read: it is not compared", slog.String("intent_id", o.env.ID()), slog.String("error", err.Error()))
		return nil
	}
	was, there := rec.Parts[storage.PartResult]
	if !there {
		return nil // it was erased
	}
	path, differs := state.FirstDifference(was, result)
	if !differs {
		return nil
	}
	payload, _ := json.Marshal(map[string]any{ // plain data
		"node": o.task.Node, "position": o.task.Compare, "path": path, "recorded": intents.Digest(was), "comes": intents.Digest(result),
	})
	return []intents.Fact{{Event: "run.differs", Payload: payload}}
}
