package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// end is how the task of a step ended.
type end struct {
	step int
	task string
	gone bool // its process is: nobody says how it ended
	runReply
}

// flow carries out the steps of the plan side by side, each by a task of its own that is
// delegated as soon as the step is ready, until none runs and none can begin: those of a
// planner, the one of an agent, or the nodes of a run. The plan
// is this goroutine's alone: those that wait for a task only report its end. A step
// that fails lets the others end; none begins after it until the plan is revised.
//
// A task whose process is gone ends this with errGone: the plan is claimed anew.
//
// A crash in here leaves tasks that live. They go on until the plan is claimed again,
// which ends them; their steps are then opened anew.
func (d *drive) flow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	ends := make(chan end, catalog.MaxLiveNodes)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()
	for running := 0; ; {
		wait, until, err := d.open(ctx, running)
		if err != nil {
			return err
		}
		if wait != nil {
			running++
			tasks.Go(func() { ends <- wait() })
			continue
		}
		if running == 0 && until.IsZero() {
			return nil
		}
		var due <-chan time.Time
		if !until.IsZero() {
			due = d.cfg.after(until.Sub(d.cfg.Now()))
		}
		select {
		case e := <-ends:
			running--
			if err := d.ended(ctx, e); err != nil {
				return err
			}
		case <-due:
		case <-d.patched:
			if err := d.look(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// open opens a task for a step that is ready. Without one, until is when there may be one;
// zero: not before a task has ended.
func (d *drive) open(ctx context.Context, running int) (wait func() end, until time.Time, err error) {
	switch {
	case d.plan.Status != catalog.PlanExecuting:
		return nil, until, nil
	case d.queue != nil:
		return d.openNode(ctx, running)
	}
	ready := d.plan.Ready()
	if len(ready) == 0 || running == catalog.MaxLive {
		return nil, until, nil
	}
	limit, err := d.taskTime(ctx, ready[0])
	if err == nil {
		wait, err = d.step(ctx, ready[0], limit)
	}
	var refused *OrderError
	if errors.As(err, &refused) && running > 0 {
		return nil, until, nil // a step beside it has failed, as its task will report
	}
	return wait, until, err
}

// waits ends a drive that can run no step before people have decided.
func (d *drive) waits(ctx context.Context) error {
	waiting := false
	for _, s := range d.plan.Steps {
		if h := d.held[s.Step]; s.Status == catalog.StepHeld && h.Held != nil {
			why := "This waits for approval: "
			if h.Held.Hint != "" {
				why = "This waits: "
			}
			text := cmp.Or(h.Reply, why+h.Held.Reason)
			if d.queue == nil { // a run is no turn of a conversation
				d.remember(ctx, "turn:"+d.turn.TurnID+":held", text, nil) // whose use the end of the turn tells
			}
			d.frame(bus.FrameHeld, bus.HeldData{PlanID: d.turn.PlanID, Text: guarded(text), Approval: *h.Held})
			return nil // the frame ends the user's stream
		}
		waiting = waiting || s.Status == catalog.StepHeld
	}
	if !waiting {
		return errors.New("no step of the plan can run")
	}
	return nil
}

// step opens a task for a step. wait waits for its end; it uses nothing of the drive
// that changes, and shows what the task says meanwhile.
func (d *drive) step(ctx context.Context, s catalog.StepView, limit time.Duration) (wait func() end, err error) {
	deadline := d.cfg.Now().Add(limit).UTC()
	args := catalog.Step{
		PlanID: d.turn.PlanID, PlanDigest: d.plan.PlanDigest, Step: s.Step, Epoch: d.epoch,
		TaskID: intents.NewTimedID(intents.KindTask, d.cfg.Now()), Deadline: deadline.Format(time.RFC3339),
	}
	turn := d.turn
	if d.plan.Agent == "" {
		turn.History = nil // a step has its inputs
	}
	turn.Grant = d.sealer.grantOf(d.turn)
	instance, err := prepareTask(ctx, d.cfg.Bus, turn, &args)
	if err != nil {
		return nil, err
	}
	var opened catalog.StepResult
	a, err := d.order(ctx, "step", args, &opened)
	if err != nil {
		return nil, err
	}
	told := toldBy(a)
	d.take(opened.Plan, at(a), told.Next)
	d.status("step_started", cmp.Or(s.ID, s.Task), s.Step)
	turn.Grant = d.sealer.grantOf(d.turn)
	run := runRequest{
		Turn: turn, TaskID: args.TaskID, UserTask: d.task, Soul: d.soul, Revision: s.Revision, Step: s.PlanStep,
		Inputs: d.inputs(s), Agent: cmp.Or(s.Agent, d.plan.Agent), Route: d.given, Epoch: d.epoch, Deadline: args.Deadline, Calls: told.Calls, Tokens: told.Tokens, Order: told.Order, DryRun: told.DryRun, Kept: told.Kept,
		Effects: slices.DeleteFunc(told.Facts, func(f catalog.OrderFact) bool { return f.Step == s.Step && f.Revision == s.Revision }),
	}
	return func() end {
		e := end{step: s.Step, task: args.TaskID}
		if err := d.helped(ctx, "task", instance, taskTime, turn.Grant, run, &e.runReply, func(p progress) { d.progress(&s, p) }); err != nil {
			e.runReply, e.gone = runReply{Status: taskFailed, Reason: "the task does not answer"}, errors.Is(err, errGone)
		}
		return e
	}, nil
}

// prepareTask has a process of the task role make the key of a task, and says which one.
func prepareTask(ctx context.Context, conn bus.Conn, turn Turn, step *catalog.Step) (instance string, err error) {
	var ready taskReply
	if err := delegate(ctx, conn, bus.Agent("task"), planTime, taskRequest{turn, *step}, &ready); err != nil {
		return "", err
	}
	if ready.Error != "" {
		return "", errors.New(ready.Error)
	}
	step.JWK, step.PoP = ready.Step.JWK, ready.Step.PoP // nothing else is taken from the reply
	return ready.Instance, nil
}

// inputs are the memory keys of the steps whose results a step works on.
func (d *drive) inputs(s catalog.StepView) []stepInput {
	var out []stepInput
	for _, n := range s.Reads() {
		for _, from := range d.plan.Steps {
			if from.Step == n {
				out = append(out, stepInput{n, from.MemoryKey})
			}
		}
	}
	return out
}

// ended handles the end of a task. The plan goes on as the task's step.finish left
// it; whatever a task reports, the router judges the next move.
func (d *drive) ended(ctx context.Context, e end) error {
	d.used = catalog.AddUsage(d.used, e.Usage...)
	if e.Held != nil {
		e.Held.Step = e.step
		d.held[e.step] = e.runReply
	}
	d.asked = e.Routing
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.gone || e.Status == taskUnanswered:
		return errGone
	case e.Plan != nil:
		d.take(*e.Plan, e.At, e.Next)
	case e.Status == taskViolation: // the outcome of an order of the task ended the step: no move answered
		if err := d.look(ctx); err != nil {
			return err
		}
	case e.Status != taskFailed: // it has said its end, and the answer was lost or the order was: the record knows
		if err := d.look(ctx); err != nil {
			return err
		}
		if slices.ContainsFunc(d.plan.Steps, func(s catalog.StepView) bool { return s.Step == e.step && s.Status == catalog.StepRunning }) {
			return errGone
		}
	default: // the task could not say its end itself: the manager may only say failed
		reason := cmp.Or(e.Reason, "the task ended without a result")
		err := d.move(ctx, "step.finish", catalog.StepFinish{TaskID: e.task, Status: taskFailed, Reason: cut(reason, 1000)})
		if refused := (*OrderError)(nil); errors.As(err, &refused) && refused.Answer.Code == intents.KeyRevoked {
			err = d.look(ctx) // it has said its end, and the answer was lost
		}
		if err != nil {
			return err
		}
	}
	if d.queue != nil {
		d.nodeEnded(e)
		return nil
	}
	for _, s := range d.plan.Steps {
		switch {
		case s.Step != e.step:
		case s.Status == catalog.StepDone:
			if d.plan.Agent != "" { // the end of its text comes before the word that it is done
				d.answer, d.components = e.Reply, json.RawMessage(e.Components)
				d.saying.flush(true)
			}
			d.status("step_done", s.Task, e.step)
			if d.plan.Agent != "" {
				return nil
			}
			return d.read(ctx, e.step, s.MemoryKey)
		case s.Status == catalog.StepHeld && d.plan.Agent != "": // its text is that of the held turn
			d.saying.flush(true)
			return nil
		case s.Status == catalog.StepHeld || s.Status == catalog.StepPending:
			d.saying.withdraw()
			return nil
		}
	}
	d.saying.withdraw()
	d.status("step_failed", "", e.step)
	return nil
}

// look reads the plan again. It waits for what was recorded before it.
func (d *drive) look(ctx context.Context) error {
	var got catalog.PlanGetResult
	a, err := d.order(ctx, "plan.get", catalog.PlanGet{PlanID: d.turn.PlanID}, &got)
	if err == nil {
		d.take(got.Plan, at(a), toldBy(a).Next)
	}
	return err
}
