package audit

import (
	"bytes"
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// ofNode checks an intent of a run against its node in the graph, and that an intent of a replay has no
// effect.
func (f *applier) ofNode(j *job, view *state.View, o state.Intent) error {
	if !f.whole {
		return nil
	}
	if err := view.MayAct(o.Tenant, o.Context.PlanID, o.Decision.Effect); err != nil {
		return err
	}
	if j.task == nil || j.task.Node == "" {
		return nil
	}
	if err := view.CheckRepeat(o.Tenant, o.Signer, o.Type, o.Args, o.Context, false); err != nil || o.Erased || j.intent.hidden() {
		return err
	}
	return view.CheckNodeIntent(j.task.Task, o.Type, o.Args)
}

// outputs checks the outputs in the outcome of a node's intent against the graph.
func (f *applier) outputs(o *open, it *item) error {
	if !f.whole || !o.ofNode || it.outcome.Status != intents.Done || it.missing != nil {
		return nil
	}
	is := f.state.View().OutputsOf(o.task.Task, it.outcome.Result)
	if is == nil || len(it.Erased) > 0 {
		return nil
	}
	was, err := intents.Canonical(it.outcome.Outputs)
	if err != nil {
		return errors.New("the outcome of a node without its outputs")
	}
	if !bytes.Equal(was, is) {
		return fmt.Errorf("the outputs of the node %s are not those of its result", o.task.Node)
	}
	return nil
}
