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

// readRun reads what a run.replay retains of the run that it repeats, because the state has dropped
// its values. Missing values were erased, and nodes that need them fail.
func (r *Router) readRun(ctx context.Context, d *decision, so *state.Intent) error {
	if d.env.Type() != state.TypeRunReplay {
		return nil
	}
	a, err := argsOf[catalog.RunReplay](d.env)
	if err != nil {
		return err
	}
	src, err := d.view.ReplaySource(*so, a)
	if err != nil {
		return err
	}
	rec, err := r.cfg.Records.Get(ctx, src.Start)
	if err != nil {
		return err
	}
	start, err := state.ReadIntent(rec)
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
	d.replay = so.Replay
	return nil
}

// outputsAt returns the outputs of a node whose intent is at a position; nil: they were erased.
func (r *Router) outputsAt(ctx context.Context, src state.Source, node string, position int64) (json.RawMessage, error) {
	rec, err := r.cfg.Records.Get(ctx, position)
	if err != nil {
		return nil, err
	}
	of, err := state.ReadIntent(rec)
	if err != nil {
		return nil, err
	}
	if of.Type == state.TypeStepFinish { // the reply of an agent
		if of.Erased {
			return nil, nil
		}
		return state.NodeOutput(src.Graph, node, of)
	}
	rec, err = r.outcomeRecord(ctx, position)
	if err != nil {
		return nil, err
	}
	out, err := rec.Outcome()
	if err == nil && out.Status == intents.StatusIndetermined { // an operator has resolved it as done
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

// mayAct refuses, of a replay, everything that executors execute and that has effects.
func (r *Router) mayAct(d *decision) error {
	if d.row.Executor == catalog.ExecutorRouter || d.onlyDecided() {
		return nil
	}
	return d.view.MayAct(d.env.Principal().Tenant, d.env.Context().PlanID, d.Effect)
}

// onlyDecided reports whether the intent is decided and never accepted: it belongs to a node of a
// shadow, of which nothing is recorded.
func (d *decision) onlyDecided() bool { return d.ofNode() && d.task.DryRun }

// shadowHeld is the policy ID that a shadow reports for an intent that a dry run would hold.
const shadowHeld = "writ.replay.held"

// dryRun is the refusal of an intent that is decided and never accepted.
func dryRun(res policies.Result) error {
	x := res.Refusal()
	switch {
	case x == nil:
		x = intents.Refuse(intents.TaskScope, "", "a replay sends nothing: a dry run allows the intent")
		x.PolicyIDs = []string{intents.RuleReplayAllowed}
	case x.Code == intents.ApprovalRequired:
		ids := append([]string{shadowHeld}, x.PolicyIDs...)
		x = intents.Refuse(intents.TaskScope, "", "a replay sends nothing: a dry run holds the intent for approval")
		x.PolicyIDs = ids
	}
	return x
}

// compared reports where the result of a node of a freeze differs from the recorded one: by path
// and digests, never by value.
func (r *Router) compared(ctx context.Context, d *decision, result json.RawMessage) []intents.ReportedEvent {
	if d.task.Compare == 0 {
		return nil
	}
	rec, err := r.outcomeRecord(ctx, d.task.Compare)
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "the recorded outcome of a node cannot be read: it is not compared", slog.String("intent_id", d.env.ID()), slog.String("error", err.Error()))
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
		"node": d.task.Node, "position": d.task.Compare, "path": path, "recorded": intents.Digest(was), "comes": intents.Digest(result),
	})
	return []intents.ReportedEvent{{Event: "run.differs", Payload: payload}}
}
