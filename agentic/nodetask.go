package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// asNode signs the one intent of a node. If an earlier task has signed it, it is the same intent:
// the router returns its outcome. An agent's node has none.
func (w *worker) asNode(ctx context.Context) error {
	if w.req.Intent.Type == catalog.NodeAgent {
		w.req.UserTask = nodeMessage(w.req.Intent.Args)
		return w.converse(ctx)
	}
	at := w.place
	at.Number = w.req.Intent.Occurrence
	a, err := w.submitter.Submit(ctx, w.req.Turn, at, w.req.Intent.Type, w.req.Intent.Args, nil)
	var refused *IntentError
	if w.req.DryRun && errors.As(err, &refused) && refused.Answer.Decision != nil && slices.Contains(refused.Answer.Decision.PolicyIDs, intents.RuleReplayAllowed) {
		a, err = refused.Answer, nil
	}
	if err == nil {
		w.signed = a.IntentID
	}
	return err
}

// asKept ends as the node did in the original run.
func (w *worker) asKept() error {
	if w.req.Kept.Status != taskDone {
		return errKept
	}
	w.signed = w.req.Kept.Intent
	return nil
}

// errKept means that a replay, which does not execute a node, has no result of it.
var errKept = errors.New("the run that is repeated has no result of the node, or it was erased")

// nodeMessage is the message of an agent's node: its task, after its other inputs.
func nodeMessage(inputs json.RawMessage) string {
	var all map[string]any
	if json.Unmarshal(inputs, &all) != nil {
		return string(inputs)
	}
	task, _ := all["task"].(string)
	var m blocks
	if delete(all, "task"); len(all) > 0 {
		m.add("Inputs", all)
	}
	return m.task(task)
}
