package agentic

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// end is the end of a step's task.
type end struct {
	step int
	task string
	lost bool // its process is gone: its end is unknown
	runReply
}

// steps executes the steps of the plan concurrently, each by a task of its own that is delegated
// as soon as the step is ready, until none runs and none can begin. Only this goroutine uses the
// plan: those that wait for a task only report its end. When a step fails the others may end;
// none begins until the plan is revised.
//
// If the process of a task is gone, steps returns errGone, and if a call takes longer than its task
// may, errContinues: the plan is claimed again.
func (r *Run) steps(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	ends := make(chan end, catalog.MaxLiveNodes)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()
	for running := 0; ; {
		var wait func() end
		var until time.Time
		if r.plan.Status == catalog.PlanExecuting {
			var err error
			if wait, until, err = r.kind.open(ctx, running); err != nil {
				return err
			}
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
			due = r.cfg.after(until.Sub(r.cfg.Now()))
		}
		select {
		case e := <-ends:
			running--
			if err := r.ended(ctx, e); err != nil {
				return err
			}
		case <-due:
		case <-r.patched:
			if err := r.read(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openStep opens a task for a step. wait waits for its end; it uses nothing of the run that
// changes, and displays the task's progress meanwhile.
func (r *Run) openStep(ctx context.Context, s catalog.StepView, limit time.Duration, req runRequest) (wait func() end, err error) {
	deadline := r.cfg.Now().Add(limit).UTC()
	args := catalog.Step{
		PlanID: r.turn.PlanID, PlanDigest: r.plan.PlanDigest, Step: s.Step, Epoch: r.epoch,
		TaskID: intents.NewTimedID(intents.KindTask, r.cfg.Now()), Deadline: deadline.Format(time.RFC3339),
	}
	instance, err := prepareTask(ctx, r.cfg.Bus, &args)
	if err != nil {
		return nil, err
	}
	var opened catalog.StepResult
	a, err := r.submit(ctx, "step", args, &opened)
	if err != nil {
		return nil, err
	}
	told := detailsOf(a)
	r.take(opened.Plan, positionOf(a), told.Next)
	r.status("step_started", cmp.Or(s.ID, s.Task), s.Step)
	req.Turn.Grant = r.submitter.grantOf(r.turn)
	req.TaskID, req.Revision, req.Step, req.Epoch, req.Deadline = args.TaskID, s.Revision, s.PlanStep, r.epoch, args.Deadline
	req.Agent, req.Inputs = cmp.Or(s.Agent, r.plan.Agent), r.inputs(s)
	req.Calls, req.Tokens, req.Intent, req.DryRun, req.Kept = told.Calls, told.Tokens, told.Intent, told.DryRun, told.Kept
	req.Effects = slices.DeleteFunc(told.IntentHistory, func(f catalog.PastIntent) bool { return f.Step == s.Step && f.Revision == s.Revision })
	return func() end {
		e := end{step: s.Step, task: args.TaskID}
		if err := r.helped(ctx, "task", instance, limit+lateTime, req.Turn.Grant, req, &e.runReply, func(p progress) { r.kind.show(&s, p) }); err != nil {
			e.runReply, e.lost = runReply{Status: taskFailed, Reason: "the task does not answer"}, errors.Is(err, errGone)
		}
		return e
	}, nil
}

// prepareTask has a process of the task role create the key of a task, and returns the process.
func prepareTask(ctx context.Context, conn bus.Conn, step *catalog.Step) (instance string, err error) {
	var ready taskReply
	if err := delegate(ctx, conn, bus.Agent("task"), placeTime, taskRequest{*step}, &ready); err != nil {
		return "", err
	}
	if ready.Error != "" {
		return "", errors.New(ready.Error)
	}
	step.JWK, step.PoP = ready.Step.JWK, ready.Step.PoP // the rest of the reply is ignored
	return ready.Instance, nil
}

// inputs returns the memory keys of the steps whose results a step works on.
func (r *Run) inputs(s catalog.StepView) []stepInput {
	var out []stepInput
	for _, n := range s.Reads() {
		if from := r.step(n); from.Step == n {
			out = append(out, stepInput{n, from.MemoryKey})
		}
	}
	return out
}

// ended handles the end of a task. The plan continues as the task's step.finish left it; whatever
// a task reports, the router judges the next transition.
func (r *Run) ended(ctx context.Context, e end) error {
	r.used = catalog.AddUsage(r.used, e.Usage...)
	if e.Approval != nil {
		e.Approval.Step = e.step
		r.held[e.step] = e.runReply
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.lost || e.Status == taskUnanswered:
		return errGone
	case e.Status == taskContinues:
		return errContinues
	case e.Plan != nil:
		r.take(*e.Plan, e.At, e.Next)
	case e.Status != taskFailed: // an outcome ended the step, or the answer to its end or to an intent was lost: the record has the result
		if err := r.read(ctx); err != nil {
			return err
		}
		if e.Status != taskViolation && r.step(e.step).Status == catalog.StepRunning {
			return errGone
		}
	default: // the task could not report its own end: the manager may only report failed
		reason := cmp.Or(e.Reason, "the task ended without a result")
		err := r.transition(ctx, "step.finish", catalog.StepFinish{TaskID: e.task, Status: taskFailed, Reason: visible.Cut(reason, 1000)})
		if codeOf(err) == intents.KeyRevoked {
			err = r.read(ctx) // it has reported its end, and the answer was lost
		}
		if err != nil {
			return err
		}
	}
	return r.kind.ended(ctx, e)
}
