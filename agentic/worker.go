package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

// worker is one running task.
type worker struct {
	cfg       Config
	tasks     *Tasks
	req       runRequest
	submitter *Submitter
	place     Place

	schema  json.RawMessage // of the result
	check   *schemas.Schema
	returns []skillReturns // what skills declare
	loop    *loop
	others  []catalog.OtherAgent // that may be asked
	key     string               // of the result, once it is stored
	show    *tokens              // of an agent's reply; nil: of none
	reply   string               // of an agent
	signed  string               // the intent of a node, once it is done
	// complete: a remote agent has completed the purpose of the session.
	complete bool
	answer   string     // of a conversation that the task took over
	written  *written   // likewise, a plan
	stop     *stopError // the model reports that the step cannot be done

	mu       sync.Mutex // guards the rest: calls run side by side
	material map[string]*material
	shelf    []string // skills of an agent with too many: the first are shown
	// before are calls of earlier tasks that are done or wait, by content.
	before map[string][]catalog.TranscriptCall
	// components of the answer, as they were rendered.
	components []component
	timedOut   bool   // the last called skill
	unapproved string // a call that nobody could approve, and why; empty: none
	calling    bool   // a call went on when its time was over
	seen       []seenImage
}

func (w *worker) submit(ctx context.Context, typ string, args, result any) (*intents.Answer, error) {
	at := w.place
	if at.Call = callOf(ctx); at.Call != "" {
		at.Tool, _ = ctx.Value(toolKey{}).(string)
	}
	a, err := w.submitter.Submit(ctx, w.req.Turn, at, typ, args, result)
	if err != nil && a != nil && a.Decision.LacksApprovers() {
		w.mu.Lock()
		w.unapproved = cmp.Or(at.Tool, typ) + ": " + a.Reason
		w.mu.Unlock()
	}
	if codeOf(err) == intents.InFlight {
		w.mu.Lock()
		w.calling = true
		w.mu.Unlock()
	}
	return a, err
}

// isCalling reports whether a call of the task goes on.
func (w *worker) isCalling() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calling
}

// called calls a skill.
func (w *worker) called(ctx context.Context, args catalog.SkillCall) (got catalog.SkillCallResult, a *intents.Answer, err error) {
	a, err = w.submit(ctx, "skill.call", args, &got)
	w.mu.Lock()
	w.timedOut = codeOf(err) == intents.ExecutorTimeout
	w.mu.Unlock()
	return got, a, err
}

// cause returns the cause of a step that is not done; empty: it is in the reason alone.
func (w *worker) cause() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.written != nil:
		return catalog.NeedsPlan
	case w.unapproved != "":
		return catalog.NeedsApprovers
	case w.timedOut:
		return catalog.SkillTimeout
	}
	return ""
}

// work ends the step and reports its end.
func (w *worker) work(ctx context.Context) runReply {
	err := w.attempt(ctx)
	var stop *stopError
	var refused *IntentError
	switch {
	case err == nil:
		return w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskDone, MemoryKey: w.key, Intent: w.signed, Reply: w.reply, Components: w.rendered(), WorkflowComplete: w.complete})
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && w.isCalling() && w.req.Ask == "" && !w.req.Bounded:
		return runReply{Status: taskContinues, Reason: "a call takes longer than the task may", Usage: w.used()}
	case errors.As(err, &stop):
		return w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskInsufficient, Completed: json.RawMessage("null"), Reason: visible.Cut(cmp.Or(stop.reason, "the step cannot be done"), 1000), Suggestion: visible.Cut(stop.suggestion, 1000), Cause: w.cause()})
	case errors.As(err, &refused) && refused.Answer.Code == intents.ApprovalRequired:
		end := catalog.StepFinish{TaskID: w.req.TaskID, Status: taskPendingApproval}
		if w.loop != nil {
			end.Reply = visible.Cut(guarded(w.loop.report()), maxResponse)
		}
		reply := w.finish(ctx, end)
		reply.Approval, reply.Refused = approvalOf(refused), refused
		return reply
	case errors.As(err, &refused) && refused.Answer.Code == intents.ContractViolation:
		return runReply{Status: taskViolation, Reason: refused.Answer.Reason, Usage: w.used()} // the record ended the step
	case errors.Is(ctx.Err(), context.Canceled): // the process ends: the step has not failed, and continues from the record
		return runReply{Status: taskUnanswered, Reason: "the process of the task has ended", Usage: w.used()}
	case unanswered(err) && ctx.Err() == nil: // the outcome of its last intent is unknown: the next task reads it in the record
		w.cfg.Log.WarnContext(ctx, "task without an answer", slog.String("plan_id", w.req.Turn.PlanID), slog.Int("step", w.req.Step.Step), slog.String("error", err.Error()))
		return runReply{Status: taskUnanswered, Reason: plain(err), Usage: w.used()}
	default:
		w.cfg.Log.WarnContext(ctx, "task", slog.String("plan_id", w.req.Turn.PlanID), slog.Int("step", w.req.Step.Step), slog.String("error", model.Detail(err)))
		reason, late := plain(err), errors.Is(ctx.Err(), context.DeadlineExceeded)
		if late {
			reason = "the step was not done by its deadline"
		}
		reply := w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskFailed, Reason: visible.Cut(reason, 1000), Cause: w.cause()})
		reply.TimedOut = late
		return reply
	}
}

// unanswered reports whether an intent got no answer, or found no router.
func unanswered(err error) bool {
	return errors.Is(err, bus.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded)
}

func approvalOf(e *IntentError) *bus.Approval {
	h := &bus.Approval{IntentID: e.Answer.IntentID, Type: e.Type, Reason: e.Answer.Reason, URL: e.Answer.Approval}
	if d := e.Answer.Decision; d != nil {
		h.Approvers, h.PolicyIDs = d.Approvers, d.PolicyIDs
		if slices.Equal(d.PolicyIDs, []string{intents.RuleUnknownOutcome}) {
			h.Hint = d.Hint
		}
		if d.Hold != nil {
			h.Deadline = d.Hold.Deadline
		}
	}
	return h
}

// used returns the model usage of the task.
func (w *worker) used() []catalog.Usage {
	if w.loop == nil {
		return nil
	}
	return w.loop.used
}

// finishTime bounds how long a task may take to report its end, which is sent again while there
// is no answer.
const finishTime = 4 * bus.AnswerTime

// finish signs the task's own end; its key is invalid afterwards.
func (w *worker) finish(ctx context.Context, f catalog.StepFinish) runReply {
	ctx, cancel := context.WithTimeout(clock.Lasting(ctx), finishTime)
	defer cancel()
	var asked askReport
	f.Usage = w.used()
	if w.loop != nil {
		f.Dropped = w.loop.dropped
	}
	if w.loop != nil && w.req.busy != nil {
		*w.req.busy = w.loop.busy
	}
	if w.loop != nil && w.req.Agent != "" {
		asked = w.loop.askReport()
		if w.loop.noData > 0 {
			errorEmit(ctx, w.cfg, w.req.Agent, axisData, false)
		}
	}
	if f.Cause == catalog.NeedsApprovers {
		f.Reason = visible.Cut("nobody can approve "+w.unapproved, 1000)
	}
	var plan catalog.PlanView
	a, err := w.submit(ctx, "step.finish", f, &plan)
	if err != nil {
		w.cfg.Log.WarnContext(ctx, "step.finish", slog.String("plan_id", w.req.Turn.PlanID), slog.Int("step", w.req.Step.Step), slog.String("error", err.Error()))
		return runReply{Status: f.Status, Reason: f.Reason, Usage: f.Usage, Reply: f.Reply, Components: f.Components} // it may be in the record
	}
	told := detailsOf(a)
	if told.IntentHistory != nil {
		plan.IntentHistory = told.IntentHistory
	}
	return runReply{Status: f.Status, Reason: f.Reason, Answer: w.answer, Written: w.written, Plan: &plan, At: positionOf(a), Next: told.Next, Reply: f.Reply, Components: f.Components, Partial: w.loop != nil && w.loop.noData > 0, Routing: asked}
}

// stopError means that the step cannot be done, with the reason.
type stopError struct{ reason, suggestion string }

func (e *stopError) Error() string { return e.reason }

// attempt runs the executor until the result of the step is stored.
func (w *worker) attempt(ctx context.Context) error {
	switch {
	case w.req.Kept != nil:
		return w.asKept()
	case w.req.Intent != nil:
		return w.asNode(ctx)
	case w.req.Agent != "":
		return w.asAgent(ctx)
	case w.req.Direct != nil:
		return w.answerDirectly(ctx, w.req.Direct)
	}
	if err := w.compileShape(); err != nil {
		return err
	}
	tools, note, err := w.tools(ctx)
	if err != nil {
		return err
	}
	message, err := w.message(ctx)
	if err != nil {
		return err
	}
	agent := w.inTime(w.cfg.builtin(agents.Executor))
	w.loop = &loop{
		seen:  w.takeSeen,
		model: w.cfg.Model, log: w.cfg.Log, agent: agent, tools: w.watched(tools, agent), step: w.place.Step,
		req:    request(agent, w.req.Soul, w.req.Turn, w.cfg.Now(), message, note),
		finish: w.finishWith, over: func() bool { return w.key != "" },
	}
	if w.req.Only {
		w.show = &tokens{show: func(d bus.ContentData) { w.say(progress{Text: &d}) }, now: w.cfg.Now}
		answer := &spoken{show: w.show, tool: writeMemoryTool.Name, member: answerMember(w.req.Step)}
		w.loop.on, w.loop.calling = answer.take, answer.calling
	}
	if len(w.req.Calls) == 0 {
		w.loop.taken = w.planned()
	}
	if err := w.resume(ctx); err != nil || w.key != "" { // only its end was missing
		return err
	}
	_, err = w.loop.run(ctx)
	var wrong *outputError
	switch {
	case w.stop != nil:
		return w.stop
	case errors.As(err, &wrong):
		return &stopError{"no result is what return_spec asks for: " + wrong.Error(), "ask for less, or for another shape"}
	case errors.Is(err, errLimit) || errors.Is(err, errNoOutput):
		return &stopError{err.Error(), "split the step, or use another skill"}
	}
	if err == nil && w.show != nil {
		w.show.flush(true)
	}
	return err
}

// planned returns the calls that the step begins with, as a reply of the model; nil: none.
func (w *worker) planned() *model.Response {
	var out model.Response
	for i, c := range w.req.Begin {
		if at := slices.Index(w.req.Step.Skills, c.Skill); at >= 0 {
			out.Calls = append(out.Calls, model.Call{ID: fmt.Sprintf("call_1_%d", i), Name: w.loop.tools[at].Name, Arguments: string(c.Input)})
		}
	}
	if len(out.Calls) == 0 {
		return nil
	}
	return &out
}

// compileShape reads the required shape of the step's result.
func (w *worker) compileShape() error {
	schema, err := schemas.CompileShape(w.req.Step.ReturnSpec.Shape)
	if err == nil {
		w.schema = schema
		w.check, err = schemas.Compile(schema)
	}
	if err != nil {
		return &stopError{"return_spec.shape does not compile", "revise the step's return_spec"}
	}
	return nil
}

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
