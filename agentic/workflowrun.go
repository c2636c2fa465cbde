package agentic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/visible"
)

// Engine is the workflow engine: it accepts runs of workflows. The router determines which nodes
// are ready, and which no edge reaches; the engine evaluates nothing and asks no model.
type Engine struct{ *dispatch }

// NewEngine requires the key of role workflow.
func NewEngine(cfg Config) *Engine {
	places := ratelimit.NewPlaces(workers) // of the nodes that run at once in this process
	return &Engine{newDispatch(cfg, "workflow", func(r *Run) strategy { return &workflowRun{Run: r, places: places} })}
}

// Serve accepts dispatches until ctx ends.
func (e *Engine) Serve(ctx context.Context, ready chan<- struct{}) error {
	return e.serve(ctx, bus.Service{Description: "drives runs of workflows"}, ready)
}

// workflowRun runs a workflow: it opens a task for each ready node and skips those that no edge
// reaches. The intent of a node is signed once, however often it is requested.
type workflowRun struct {
	*Run
	places  *ratelimit.Places // of nodes
	refused int               // how often in a row the router has refused a node that it had named as next
}

// prepare does nothing: a workflow is planned, and its nodes have their inputs.
func (*workflowRun) prepare(context.Context) (over bool, err error) { return false, nil }

// retryRefused is the wait of a refused node, and mostRefused bounds refusals in a row.
const (
	retryRefused = 250 * time.Millisecond
	mostRefused  = 5
)

// errSuperseded means that another driver runs it, or that it has ended.
var errSuperseded = errors.New("the run goes on without this driver")

// open opens a task for the next ready node, and skips the nodes to be skipped. A patch of the
// run may come in between: then the run is read again.
func (w *workflowRun) open(ctx context.Context, running int) (wait func() end, until time.Time, err error) {
	if w.stuck() != nil {
		return nil, until, nil // running nodes end by themselves
	}
	for _, n := range w.next {
		if w.step(n.Step).Step == 0 { // added by a patch
			if err := w.read(ctx); err != nil {
				return nil, until, err
			}
		}
		var refused *IntentError
		switch {
		case n.Next == catalog.NextSkip:
			err = w.transition(ctx, "node.skip", catalog.NodeSkip{PlanID: w.turn.PlanID, Epoch: w.epoch, Step: n.Step})
			if err == nil { // this may have made others ready
				w.nodeStatus("skipped", n.Step)
				return w.open(ctx, running)
			}
		case n.Next != catalog.NextRun || running == catalog.MaxLiveNodes:
			continue
		case n.RetryAt != nil && n.RetryAt.After(w.cfg.Now()):
			if until.IsZero() || n.RetryAt.Before(until) {
				until = *n.RetryAt
			}
			continue
		default:
			wait, err = w.openNode(ctx, n)
		}
		if errors.As(err, &refused) {
			return nil, w.cfg.Now().Add(retryRefused), w.readRefused(ctx, refused)
		}
		w.refused = 0
		return wait, until, err
	}
	return nil, until, nil
}

// stuck returns the node because of which the run can only fail; nil: none.
func (w *workflowRun) stuck() *catalog.NextNode {
	if i := slices.IndexFunc(w.next, func(n catalog.NextNode) bool { return n.Next == catalog.NextStuck }); i >= 0 {
		return &w.next[i]
	}
	return nil
}

// priorities of runs among those of one API key; others are normal.
var priorities = map[string]int{"low": -1, "high": 1}

// openNode opens the task of a node as soon as there is a place for it.
func (w *workflowRun) openNode(ctx context.Context, n catalog.NextNode) (wait func() end, err error) {
	leave, err := w.places.Wait(ctx, w.turn.Tenant, keyOf(w.turn.Grant), priorities[w.plan.Run.Priority])
	if err != nil {
		return nil, err
	}
	limit := w.cfg.stepTime()
	if n.TimeoutSec > 0 {
		limit = time.Duration(n.TimeoutSec) * time.Second
	}
	waitEnd, err := w.openStep(ctx, w.step(n.Step), limit, runRequest{Turn: w.turn, Bounded: n.TimeoutSec > 0})
	if err != nil {
		leave()
		return nil, err
	}
	return func() end {
		defer leave()
		return waitEnd()
	}, nil
}

// readRefused reads the run after a refusal that may come from a patch of it, or from clocks that
// differ.
func (w *workflowRun) readRefused(ctx context.Context, refused *IntentError) error {
	if w.refused++; w.refused > mostRefused || !slices.Contains([]intents.Code{intents.MalformedArgs, intents.TaskScope}, refused.Answer.Code) {
		return refused
	}
	if err := w.read(ctx); err != nil {
		return err
	}
	if w.plan.Epoch != w.epoch || w.plan.Status != catalog.PlanExecuting {
		return errSuperseded
	}
	return nil
}

func (w *workflowRun) ended(_ context.Context, e end) error {
	state := e.Status
	if state != taskDone && slices.ContainsFunc(w.next, func(n catalog.NextNode) bool { return n.Step == e.step && n.RetryAt != nil }) {
		state = "retrying"
	}
	w.nodeStatus(state, e.step)
	return nil
}

func (w *workflowRun) nodeStatus(state string, step int) {
	w.status("step_"+state, w.step(step).ID, step)
}

func (w *workflowRun) close(ctx context.Context, cause error) error {
	if cause != nil {
		if !w.isCurrent(ctx) {
			return nil // another driver runs it, or it has ended
		}
		return w.closePlan(ctx, "the engine could not go on: "+plain(cause))
	}
	if err := w.read(ctx); err != nil { // no answer since the claim has the nodes
		return err
	}
	if n := w.stuck(); n != nil {
		return w.closePlan(ctx, fmt.Sprintf("node %s failed: %s", w.step(n.Step).ID, n.Reason))
	}
	switch {
	case w.plan.Status != catalog.PlanExecuting:
		return nil
	case slices.ContainsFunc(w.plan.Steps, func(s catalog.StepView) bool { return s.Status == catalog.StepPendingApproval }):
		return w.waits(func(string) {}) // a run is no turn of a conversation
	case slices.ContainsFunc(w.next, func(n catalog.NextNode) bool { return n.Next == catalog.NextRun }):
		return nil // people have decided since its task ended: gateways dispatch the run again, as after every decision
	}
	return w.closePlan(ctx, "")
}

// closePlan closes the run: as failed with a reason, otherwise as complete.
func (w *workflowRun) closePlan(ctx context.Context, failure string) error {
	end := catalog.PlanClose{PlanID: w.turn.PlanID, Epoch: w.epoch, Status: string(catalog.PlanComplete), Response: w.summary(), Usage: w.used}
	if failure != "" {
		f := &catalog.Failure{Reason: visible.Cut(failure, 1000), CompletedSteps: w.done()}
		for _, s := range w.plan.Steps {
			if s.Status == catalog.StepFailed {
				f.LastFailure = &catalog.LastFailure{Step: s.Step, Reason: visible.Cut(s.FailureReason, 1000)}
			}
		}
		end.Status, end.Response, end.Failure = string(catalog.PlanFailed), "", f
	}
	if err := w.transition(ctx, "plan.close", end); err != nil {
		return err
	}
	if failure != "" {
		w.frame(bus.FrameError, bus.ErrorData{Reason: guarded(failure), Failure: compact(end.Failure)})
	} else {
		w.frame(bus.FrameAnswer, bus.AnswerData{Response: end.Response})
	}
	w.frame(bus.FrameDone, bus.DoneData{PlanID: w.turn.PlanID, Status: end.Status})
	return nil
}

// summary describes the states of the nodes.
func (w *workflowRun) summary() string {
	by := make(map[catalog.StepStatus][]string)
	for _, s := range w.plan.Steps {
		by[s.Status] = append(by[s.Status], s.ID)
	}
	var parts []string
	for _, status := range []catalog.StepStatus{catalog.StepDone, catalog.StepSkipped, catalog.StepFailed} {
		if ids := by[status]; len(ids) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(ids), status, visible.Cut(strings.Join(ids, ", "), 2000)))
		}
	}
	return strings.Join(parts, ", ") + "."
}
