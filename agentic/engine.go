package agentic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// Engine is the workflow engine: it takes runs, claims them and drives them. It opens a task
// for each node that is ready, skips those that no edge leads to, and closes the run. Which
// they are the router says; the engine evaluates nothing and asks no model.
type Engine struct {
	*driving
	queue *queue
}

// NewEngine needs the key of role workflow.
func NewEngine(cfg Config) *Engine {
	e := &Engine{newDriving(cfg, "workflow"), newQueue(workers)}
	e.work = e.take
	return e
}

// Serve takes hand-outs until ctx ends.
func (e *Engine) Serve(ctx context.Context, ready chan<- struct{}) error {
	return e.serve(ctx, bus.Service{Description: "drives runs of workflows"}, ready)
}

// take drives a run to its end, until only people can move it, or until ctx ends.
func (e *Engine) take(ctx context.Context, h bus.HandOut) {
	d, unfollow := e.begin(ctx, h)
	defer unfollow()
	d.queue = e.queue
	err := d.reopening(ctx, d.nodes)
	if err == nil || ctx.Err() != nil {
		return
	}
	e.cfg.Log.WarnContext(ctx, "run", slog.String("run_id", h.PlanID), slog.String("error", model.Detailed(err)))
	var refused *OrderError
	if errors.As(err, &refused) && refused.Type == "plan.claim" || !d.drives(ctx) {
		return // somebody else drives it, or it has ended
	}
	if err := d.closeRun(ctx, "the engine could not go on: "+plain(err)); err != nil {
		e.cfg.Log.WarnContext(ctx, "plan.close", slog.String("run_id", h.PlanID), slog.String("error", err.Error()))
	}
}

// nodes claims the run and moves it until it is final or waits for people.
//
// A crash in here leaves tasks that live. The run is handed out again, its next claim ends
// them, and their nodes go on: the order of a node is sealed once, whoever asks for it.
func (d *drive) nodes(ctx context.Context) error {
	if err := d.move(ctx, "plan.claim", catalog.PlanClaim{PlanID: d.turn.PlanID, Epoch: d.epoch, Driver: d.driver}); err != nil {
		return err
	}
	if err := d.flow(ctx); err != nil {
		return err
	}
	if err := d.look(ctx); err != nil { // no answer since the claim has the nodes
		return err
	}
	if n := d.stuck(); n != nil {
		return d.closeRun(ctx, fmt.Sprintf("node %s failed: %s", d.node(n.Step).ID, n.Reason))
	}
	waits := false
	for _, s := range d.plan.Steps {
		waits = waits || s.Status == catalog.StepHeld
	}
	switch {
	case d.plan.Status != catalog.PlanExecuting:
		return nil
	case waits:
		return d.waits(ctx)
	}
	return d.closeRun(ctx, "")
}

// stuck is the node because of which the run can only fail; nil: there is none.
func (d *drive) stuck() *catalog.NextNode {
	for i := range d.next {
		if d.next[i].Next == catalog.NextStuck {
			return &d.next[i]
		}
	}
	return nil
}

// node is a node of the run by its number.
func (d *drive) node(step int) catalog.StepView {
	for _, s := range d.plan.Steps {
		if s.Step == step {
			return s
		}
	}
	return catalog.StepView{}
}

// closeRun ends the run: as failed for a reason, else as complete.
func (d *drive) closeRun(ctx context.Context, failure string) error {
	end := catalog.PlanClose{PlanID: d.turn.PlanID, Epoch: d.epoch, Status: string(catalog.PlanComplete), Response: d.summary(), Usage: d.used}
	if failure != "" {
		f := &catalog.Failure{Reason: cut(failure, 1000), CompletedSteps: d.done()}
		for _, s := range d.plan.Steps {
			if s.Status == catalog.StepFailed {
				f.LastFailure = &catalog.LastFailure{Step: s.Step, Reason: cut(s.FailureReason, 1000)}
			}
		}
		end.Status, end.Response, end.Failure = string(catalog.PlanFailed), "", f
	}
	if err := d.move(ctx, "plan.close", end); err != nil {
		return err
	}
	if failure != "" {
		d.frame(bus.FrameError, bus.ErrorData{Reason: guarded(failure), Failure: compact(end.Failure)})
	} else {
		d.frame(bus.FrameAnswer, bus.AnswerData{Response: end.Response})
	}
	d.frame(bus.FrameDone, bus.DoneData{PlanID: d.turn.PlanID, Status: end.Status})
	return nil
}

// summary says what became of the nodes.
func (d *drive) summary() string {
	by := make(map[catalog.StepStatus][]string)
	for _, s := range d.plan.Steps {
		by[s.Status] = append(by[s.Status], s.ID)
	}
	var parts []string
	for _, status := range []catalog.StepStatus{catalog.StepDone, catalog.StepSkipped, catalog.StepFailed} {
		if ids := by[status]; len(ids) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(ids), status, cut(strings.Join(ids, ", "), 2000)))
		}
	}
	return strings.Join(parts, ", ") + "."
}
