package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// lookEvery is how long a drive waits before it tries again what the router has just refused.
const lookEvery = 250 * time.Millisecond

// errSuperseded says that somebody else drives the run, or that it has ended.
var errSuperseded = errors.New("the run goes on without this driver")

// openNode opens a task for the next node that is ready, and skips those that are to be
// skipped. A patch of the run may come in between: then the run is read again.
func (d *drive) openNode(ctx context.Context, running int) (wait func() end, until time.Time, err error) {
	if d.stuck() != nil {
		return nil, until, nil // those that run end by themselves
	}
	for _, n := range d.next {
		if d.node(n.Step).Step == 0 { // a patch has added it
			if err := d.look(ctx); err != nil {
				return nil, until, err
			}
		}
		var refused *OrderError
		switch {
		case n.Next == catalog.NextSkip:
			err = d.skip(ctx, n.Step)
			if err == nil { // which may have made others ready
				return d.openNode(ctx, running)
			}
		case n.Next != catalog.NextRun || running == catalog.MaxLiveNodes:
			continue
		case n.RetryAt != nil && n.RetryAt.After(d.cfg.Now()):
			if until.IsZero() || n.RetryAt.Before(until) {
				until = *n.RetryAt
			}
			continue
		default:
			wait, err = d.runNode(ctx, n)
		}
		if errors.As(err, &refused) {
			return nil, d.cfg.Now().Add(lookEvery), d.lookAgain(ctx, refused)
		}
		d.refused = 0
		return wait, until, err
	}
	return nil, until, nil
}

// runNode opens the task of a node as soon as there is a place for it.
func (d *drive) runNode(ctx context.Context, n catalog.NextNode) (wait func() end, err error) {
	leave, err := d.queue.enter(ctx, d.plan.Run.Priority)
	if err != nil {
		return nil, err
	}
	limit := taskLife
	if n.TimeoutSec > 0 {
		limit = time.Duration(n.TimeoutSec) * time.Second
	}
	waitEnd, err := d.step(ctx, d.node(n.Step), limit)
	if err != nil {
		leave()
		return nil, err
	}
	return func() end {
		defer leave()
		return waitEnd()
	}, nil
}

func (d *drive) skip(ctx context.Context, step int) error {
	err := d.move(ctx, "node.skip", catalog.NodeSkip{PlanID: d.turn.PlanID, Epoch: d.epoch, Step: step})
	if err == nil {
		d.nodeStatus("skipped", step)
	}
	return err
}

// mostRefused is how often in a row the router may refuse what it has said was next.
const mostRefused = 5

// lookAgain reads the run after a refusal that may come from a patch of it, or from clocks
// that differ.
func (d *drive) lookAgain(ctx context.Context, refused *OrderError) error {
	if d.refused++; d.refused > mostRefused || !slices.Contains([]intents.Code{intents.MalformedArgs, intents.TaskScope}, refused.Answer.Code) {
		return refused
	}
	if err := d.look(ctx); err != nil {
		return err
	}
	if d.plan.Epoch != d.epoch || d.plan.Status != catalog.PlanExecuting {
		return errSuperseded
	}
	return nil
}

// nodeEnded shows what became of a node.
func (d *drive) nodeEnded(e end) {
	state := e.Status
	if state != taskDone && slices.ContainsFunc(d.next, func(n catalog.NextNode) bool { return n.Step == e.step && n.RetryAt != nil }) {
		state = "retrying"
	}
	d.nodeStatus(state, e.step)
}

func (d *drive) nodeStatus(state string, step int) {
	d.status("step_"+state, d.node(step).ID, step)
}

// asNode seals the one order of a node. One that an earlier task has sealed is the same
// order: the router answers it with what came of it. An agent's node has none.
func (w *worker) asNode(ctx context.Context) error {
	if w.req.Order.Type == catalog.NodeAgent {
		w.req.UserTask = nodeMessage(w.req.Order.Args)
		return w.converse(ctx)
	}
	at := w.at
	at.Number = w.req.Order.Occurrence
	a, err := w.sealer.Order(ctx, w.req.Turn, at, w.req.Order.Type, w.req.Order.Args, nil)
	var refused *OrderError
	if w.req.DryRun && errors.As(err, &refused) && refused.Answer.Decision != nil && slices.Contains(refused.Answer.Decision.PolicyIDs, intents.RuleReplayAllowed) {
		a, err = refused.Answer, nil
	}
	if err == nil {
		w.sealed = a.IntentID
	}
	return err
}

// asKept ends as the node has in the run that is repeated.
func (w *worker) asKept() error {
	if w.req.Kept.Status != taskDone {
		return errKept
	}
	w.sealed = w.req.Kept.Order
	return nil
}

// errKept says that a replay, which does not carry a node out, has no result of it.
var errKept = errors.New("the run that is repeated has no result of the node, or it was erased")

// nodeMessage is what an agent's node is given: its task, behind its other inputs.
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
