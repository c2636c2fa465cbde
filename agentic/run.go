package agentic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/visible"
)

// Run is one driver's work on a plan: it claims the plan, has its context read and its steps
// planned, runs each ready step, and closes it. A strategy has the parts that differ between the
// kinds of plans.
type Run struct {
	cfg       Config
	submitter *Submitter
	turn      Turn
	images    []string // that came with the dispatch, as data: URLs
	driver    string
	epoch     int
	strategy  func(*Run) strategy
	kind      strategy // of this claim

	plan     catalog.PlanView   // as the latest transition of this epoch left it
	at       int64              // position of that transition
	next     []catalog.NextNode // of a workflow: the next actions on its nodes
	held     map[int]runReply   // of tasks of this claim that wait for approval, by step
	used     []catalog.Usage    // not yet reported in an intent
	statuses *ratelimit.Limiter // one of a name at a time
	patched  chan struct{}      // signals a new graph of the workflow
}

// strategy has the differences between a plan of the planner, of an agent, and of a workflow.
type strategy interface {
	// prepare reads the context and has the plan, or its next revision, written if that is
	// missing. over means that the turn has ended.
	prepare(ctx context.Context) (over bool, err error)
	// open opens a task for a ready step. If there is none, until is when there may be one; zero:
	// not before a task has ended.
	open(ctx context.Context, running int) (wait func() end, until time.Time, err error)
	// show displays the progress of a step's task.
	show(s *catalog.StepView, p progress)
	// ended handles the result of a step, once the plan is in the state after its end.
	ended(ctx context.Context, e end) error
	// close closes the plan, or leaves it waiting, when no step runs and none can begin. With a
	// cause, this driver cannot continue the plan.
	close(ctx context.Context, cause error) error
}

func newRun(cfg Config, submitter *Submitter, h bus.PlanDispatch, of func(*Run) strategy) *Run {
	r := &Run{
		cfg: cfg, driver: h.Driver, epoch: h.Epoch + 1, submitter: submitter, strategy: of, held: make(map[int]runReply), patched: make(chan struct{}, 1),
		statuses: ratelimit.New(1, batchTime, ratelimit.Unshared(64), cfg.Now),
		turn:     Turn{TurnRef: h.TurnRef, Driver: h.Driver}, images: h.Images,
	}
	r.kind = of(r)
	return r
}

// maxClaims bounds how often a plan is claimed again because a process that worked for it was
// gone.
const maxClaims = 3

// errContinues means that a step continues with another task, which waits for a call of the last one.
var errContinues = errors.New("a call takes longer than its task may")

// Work runs the plan until it is closed or waits for people. If a process that worked for it is
// gone, the plan is claimed again: that ends the live tasks, and the steps continue with new
// tasks that receive the earlier calls.
func (r *Run) Work(ctx context.Context) error {
	for again := 0; ; again++ {
		err := r.claimed(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, errContinues):
			again--
		case !errors.Is(err, errGone) || again == maxClaims:
			return err
		default:
			r.cfg.Log.WarnContext(ctx, "go on without a process that is gone", slog.String("plan_id", r.turn.PlanID))
		}
		r.epoch++
		r.plan, r.at, r.next = catalog.PlanView{}, 0, nil
		clear(r.held)
	}
}

// claimed runs the plan under one claim.
//
// A crash in here leaves live tasks. They continue until the plan is claimed again, which ends
// them; their steps are then opened anew.
func (r *Run) claimed(ctx context.Context) error {
	if err := r.transition(ctx, "plan.claim", catalog.PlanClaim{PlanID: r.turn.PlanID, Epoch: r.epoch, Driver: r.driver}); err != nil {
		return err
	}
	r.kind = r.strategy(r)
	for {
		if over, err := r.kind.prepare(ctx); over || err != nil {
			return err
		}
		if r.plan.Status != catalog.PlanExecuting {
			return fmt.Errorf("plan is %s", r.plan.Status)
		}
		if err := r.steps(ctx); err != nil {
			return err
		}
		if r.plan.Status != catalog.PlanReplanning {
			return r.kind.close(ctx, nil)
		}
	}
}

func (r *Run) submit(ctx context.Context, typ string, args, result any) (*intents.Answer, error) {
	return r.submitter.Submit(ctx, r.turn, Place{}, typ, args, result)
}

// transition signs a transition of the plan and continues from its answer.
func (r *Run) transition(ctx context.Context, typ string, args any) error {
	var plan catalog.PlanView
	a, err := r.submit(ctx, typ, args, &plan)
	if err == nil {
		details := detailsOf(a)
		if details.Transient != nil { // of plan.claim
			r.turn.Transient = *details.Transient
		}
		r.take(plan, positionOf(a), details.Next)
		if details.TransientLost {
			return errTextsLost
		}
	}
	return err
}

// errTextsLost ends a plan: without the instruction that came with it, it might do what its user has
// ruled out.
var errTextsLost = errors.New("what came with the request for its prompts alone is lost: send the request again")

// read reads the plan again. It waits for all records before it.
func (r *Run) read(ctx context.Context) error {
	var got catalog.PlanGetResult
	a, err := r.submit(ctx, "plan.get", catalog.PlanGet{PlanID: r.turn.PlanID}, &got)
	if err == nil {
		r.take(got.Plan, positionOf(a), detailsOf(a).Next)
	}
	return err
}

// take adopts the plan as a transition at a position of the record left it. Answers of concurrent
// transitions may arrive in another order. Those of a workflow have no steps: the steps stay as
// they were when the plan was claimed or read.
func (r *Run) take(plan catalog.PlanView, position int64, next []catalog.NextNode) {
	if position < r.at {
		return
	}
	if plan.Run != nil && len(plan.Steps) == 0 {
		plan.Steps = r.plan.Steps
	}
	r.plan, r.at, r.next = plan, position, next
}

// positionOf returns the position of an answered intent.
func positionOf(a *intents.Answer) int64 {
	if a.Position == nil {
		return 0
	}
	return *a.Position
}

// isCurrent reports whether this driver still owns the plan. A driver that has lost it must not
// report the end of the turn.
func (r *Run) isCurrent(ctx context.Context) bool {
	var got catalog.PlanGetResult
	_, err := r.submit(ctx, "plan.get", catalog.PlanGet{PlanID: r.turn.PlanID}, &got)
	return err == nil && got.Plan.Epoch == r.epoch && got.Plan.CompletedAt == nil
}

// done returns the numbers of the completed steps.
func (r *Run) done() []int {
	out := []int{}
	for _, s := range r.plan.Steps {
		if s.Status == catalog.StepDone {
			out = append(out, s.Step)
		}
	}
	return out
}

// step returns a step of the plan by its number.
func (r *Run) step(n int) catalog.StepView {
	for _, s := range r.plan.Steps {
		if s.Step == n {
			return s
		}
	}
	return catalog.StepView{}
}

// waits reports that the plan continues once people have decided; it shows the reason, the calls of
// the task, and the steps that nobody has begun. The frame ends the user's stream. The error means
// that no step waits.
func (r *Run) waits(say func(text string)) error {
	waiting := false
	for _, s := range r.plan.Steps {
		if h := r.held[s.Step]; s.Status == catalog.StepPendingApproval && h.Approval != nil {
			why := "This waits for approval: "
			if h.Approval.Hint != "" {
				why = "This waits: "
			}
			text := why + h.Approval.Reason
			if h.Reply != "" {
				text += "\n\n" + h.Reply
			}
			text = visible.Cut(text+r.notBegun(), maxResponse)
			say(text)
			r.frame(bus.FramePendingApproval, bus.PendingApprovalData{PlanID: r.turn.PlanID, Text: guarded(text), Approval: *h.Approval})
			return nil
		}
		waiting = waiting || s.Status == catalog.StepPendingApproval
	}
	if !waiting {
		return errors.New("no step of the plan can run")
	}
	return nil
}

// notBegun lists the steps that nobody has begun, for a turn that waits.
func (r *Run) notBegun() string {
	var lines strings.Builder
	n := 0
	for _, s := range r.plan.Steps {
		if s.Status == catalog.StepPending {
			n++
			lines.WriteString("\n- " + visible.Cut(s.Task, maxCallText))
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\n\nNot begun (%d):%s", n, lines.String())
}

// frame displays a frame of the turn. Display has no effect, so a frame that cannot be published
// is only logged.
func (r *Run) frame(kind bus.FrameKind, data any) {
	msg, err := bus.NewFrame(kind, data)
	if err == nil {
		err = r.cfg.Bus.Publish(bus.Turn(r.turn.Tenant, r.turn.TurnID), msg)
	}
	if err != nil {
		r.cfg.Log.Warn("frame", slog.String("plan_id", r.turn.PlanID), slog.String("error", err.Error()))
	}
}

func (r *Run) status(state, message string, step int) {
	r.frame(bus.FrameStatus, bus.StatusData{State: state, Message: guarded(message), Step: step, PlanID: r.turn.PlanID})
}
