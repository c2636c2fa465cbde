package audit

import (
	"bytes"
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// ofNode holds an order of a run to what the graph gives its node, and an order of a replay to what has no
// effect.
func (f *fold) ofNode(j *job, view *state.View, o state.Order) error {
	if !f.whole {
		return nil
	}
	if err := view.MayAct(o.Tenant, o.Context.PlanID, o.Decision.Effect); err != nil {
		return err
	}
	if j.task == nil || j.task.Node == "" {
		return nil
	}
	if err := view.Again(o.Tenant, o.Signer, o.Type, o.Args, o.Context, false); err != nil || o.Erased || j.order.hidden() {
		return err
	}
	return view.CheckNodeOrder(j.task.Task, o.Type, o.Args)
}

// outputs holds what the outcome of a node's order keeps of its result to the graph.
func (f *fold) outputs(o *open, it *item) error {
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
