package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// plannedRun runs a plan that the planner writes: steps whose results become one answer.
type plannedRun struct {
	*conversation
	agents  bool          // steps may name agents
	calls   []plannedCall // that steps begin with
	direct  *direct       // the planner's conversation, until a task takes it over
	speaks  int           // the step whose task writes the answer
	written *written      // the next revision, as a task's model wrote it
	said    *tokens       // the answer of a planner or of a task that took over, while it is written
}

// prepare has a plan or a revision written. The request may instead be routed to an agent, which
// owns the plan from then on.
func (p *plannedRun) prepare(ctx context.Context) (over bool, err error) {
	if p.results == nil {
		p.agents = p.plan.Agents // as it was claimed
		if over, err := p.context(ctx); over || err != nil {
			return over, err
		}
		if err := p.readResults(ctx); err != nil {
			return false, err
		}
	}
	for p.plan.Status == catalog.PlanPlanning || p.plan.Status == catalog.PlanReplanning {
		write := p.write
		if p.plan.Routing != nil {
			write = p.routeRequest
		}
		if over, err := write(ctx); over || err != nil {
			return over, err
		}
	}
	if p.plan.Agent != "" {
		p.kind = newAgentRun(p.conversation)
		return false, p.readAgent(ctx)
	}
	return false, nil
}

// readResults reads the results of steps that an earlier driver completed.
func (p *plannedRun) readResults(ctx context.Context) error {
	p.results = make(map[int]result)
	for _, s := range p.plan.Steps {
		if s.Status == catalog.StepDone && s.MemoryKey != "" {
			if err := p.readResult(ctx, s.Step, s.MemoryKey); err != nil {
				return err
			}
		}
	}
	return nil
}

// readResult reads a step's result and confirms it, so that its lock is released.
func (p *plannedRun) readResult(ctx context.Context, step int, key string) error {
	var got catalog.ReadMemoryResult
	if _, err := p.submit(ctx, "read_memory", catalog.ReadMemory{Key: key, Confirm: true}, &got); err != nil {
		return err
	}
	p.results[step] = result{got.Data, got.Reference, got.Notes}
	return nil
}

// write has the planner write the plan or a revision.
func (p *plannedRun) write(ctx context.Context) (over bool, err error) {
	if n := len(p.plan.History); n > catalog.MaxReplans {
		return true, p.fail(ctx, "max replan attempts reached", "Several attempts did not succeed. The last one: "+p.plan.History[n-1].Reason)
	}
	for _, s := range p.plan.Steps {
		if s.Cause == catalog.NeedsApprovers && (s.Status == catalog.StepInsufficient || s.Status == catalog.StepFailed) { // another plan would need the same people
			return true, p.infeasible(ctx, cmp.Or(s.FailureReason, "nobody can approve a call of the plan"))
		}
	}
	p.status(string(p.plan.Status), "", 0)
	var place placeReply
	if err := delegate(ctx, p.cfg.Bus, bus.Agent("planner"), placeTime, placeRequest{}, &place); err != nil {
		return false, err
	}
	req := p.planRequest()
	req.Turn.Grant = p.submitter.grantOf(p.turn)
	var reply planReply
	if err := p.helped(ctx, "planner", place.Instance, p.cfg.stepTime()+lateTime, req.Turn.Grant, req, &reply, p.showWriting); err != nil {
		return false, err
	}
	p.used = catalog.AddUsage(p.used, reply.Usage...)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case reply.Error != "":
		return true, p.fail(ctx, "planning failed: "+reply.Error, reply.Error)
	case reply.Ask != "":
		return true, p.askUser(ctx, reply.Ask)
	case reply.Plan == nil:
		return true, p.infeasible(ctx, reply.Reason)
	}
	p.plan, p.answer, p.direct, p.calls = *reply.Plan, reply.Answer, reply.Direct, reply.Calls
	if n := len(p.plan.Steps) - len(p.done()); n > 0 {
		p.status("executing", fmt.Sprintf("%d steps", n), 0)
	}
	return false, nil
}

// planRequest asks for the plan, or for a revision with the results of the steps.
func (p *plannedRun) planRequest() planRequest {
	req := planRequest{Turn: p.turn, Task: p.task, Soul: p.soul, Epoch: p.epoch, Revision: p.plan.Revision + 1, FirstStep: 1, Agents: p.agents, Written: p.written}
	p.written = nil
	for _, s := range p.plan.Steps {
		req.FirstStep = s.Step + 1
		switch {
		case s.Status == catalog.StepDone:
			done := p.results[s.Step].show(planShow)
			done.Step = s.PlanStep
			req.Completed = append(req.Completed, done)
		case s.Retained():
			req.Waiting = append(req.Waiting, s.PlanStep)
		case s.Status == catalog.StepPending:
			req.Remaining = append(req.Remaining, s.PlanStep)
		case req.Failed == nil && p.triggered(s):
			f := p.failedStep(s)
			req.Failed = &f
		default:
			req.Beside = append(req.Beside, p.failedStep(s))
		}
	}
	return req
}

// triggered reports whether the plan is revised because of a step.
func (p *plannedRun) triggered(s catalog.StepView) bool {
	n := len(p.plan.History)
	return n == 0 || p.plan.History[n-1].FailedStep == s.Step // none: a look-up needs a plan
}

func (p *plannedRun) failedStep(s catalog.StepView) failedStep {
	f := failedStep{Step: s.PlanStep, Reason: s.FailureReason, Suggestion: s.Suggestion, Trigger: string(s.Status)}
	if p.triggered(s) {
		f.IntentHistory = p.plan.IntentHistory
		if n := len(p.plan.History); n > 0 {
			f.Trigger = p.plan.History[n-1].Trigger
		}
	}
	return f
}

// open gives the task of a step what the planner has for it: its first calls, or the whole
// conversation.
func (p *plannedRun) open(ctx context.Context, running int) (wait func() end, until time.Time, err error) {
	wait, err = p.openWith(ctx, running, func(step int, req *runRequest) {
		if s := p.step(step); p.direct != nil || req.Only && (s.Agent == "" || answerMember(s.PlanStep) == "data") {
			p.speaks = step
		}
		req.Direct, p.direct = p.direct, nil
		for _, c := range p.calls {
			if c.Step == step {
				req.Begin = append(req.Begin, c)
			}
		}
	})
	return wait, until, err
}

// showWriting displays progress of a planner.
func (p *plannedRun) showWriting(said progress) {
	p.showRequest(said.Request)
	p.showText(said.Text)
}

// showText displays a piece of an answer that a planner's model writes.
func (p *plannedRun) showText(text *bus.ContentData) {
	if text == nil {
		return
	}
	if p.said == nil {
		p.said = p.tokens()
	}
	p.said.take(model.Event{Text: text.Text, Reset: text.Reset})
	p.said.flush(false) // the other process has already gathered it
}

// show displays progress of a task, and the text of the one that writes the answer.
func (p *plannedRun) show(s *catalog.StepView, said progress) {
	if said.Text != nil && said.Agent == "" && p.speaks == s.Step {
		p.showText(said.Text)
		return
	}
	p.Run.show(s, said)
}

func (p *plannedRun) ended(ctx context.Context, e end) error {
	p.asks, p.answer, p.written = e.Routing, e.Answer, e.Written
	s := p.step(e.step)
	if p.said != nil {
		if s.Status == catalog.StepDone || s.Status == catalog.StepPendingApproval {
			p.said.flush(true)
		} else {
			p.said.withdraw()
		}
	}
	switch {
	case s.Status == catalog.StepDone:
		p.status("step_done", s.Task, e.step)
		return p.readResult(ctx, e.step, s.MemoryKey)
	case s.Status == catalog.StepPendingApproval, s.Status == catalog.StepPending, e.Written != nil:
	default:
		p.status("step_failed", "", e.step)
	}
	return nil
}

func (p *plannedRun) close(ctx context.Context, cause error) error {
	if cause != nil {
		return p.abandon(ctx, cause)
	}
	if len(p.done()) < len(p.plan.Steps) || p.plan.Status != catalog.PlanExecuting {
		return p.unfinished(ctx)
	}
	response, err := p.response(ctx)
	if err != nil {
		return err
	}
	data, err := p.data(ctx)
	if err != nil {
		return err
	}
	return p.complete(ctx, response, data)
}

// response returns the answer in words: the planner's own, the text of a single step, or the
// composer's text from the results.
func (p *plannedRun) response(ctx context.Context) (string, error) {
	if len(p.plan.Steps) == 0 || len(p.plan.Steps) == 1 && p.answer != "" {
		return p.answer, nil
	}
	if only := p.plan.Steps[0]; len(p.plan.Steps) == 1 && only.ReturnSpec.Shape == "string" {
		var text string
		if json.Unmarshal(p.results[only.Step].data, &text) == nil && strings.TrimSpace(text) != "" {
			return visible.Cut(guarded(text), maxResponse), nil
		}
	}
	var results []stepResult
	for _, s := range p.plan.Steps {
		r := p.results[s.Step].show(composeShow)
		r.Step = s.PlanStep
		results = append(results, r)
	}
	return p.composed(ctx, "Results", results)
}

// data returns the result of the last step for the user. A result that is too large to be inline
// is stored as an artifact, since its file will be removed and no user can read it. If that is
// refused, the user gets the name of the file and its first lines.
func (p *plannedRun) data(ctx context.Context) (json.RawMessage, error) {
	if len(p.plan.Steps) == 0 {
		return nil, nil
	}
	last := p.plan.Steps[len(p.plan.Steps)-1]
	if p.results[last.Step].ref == nil {
		return p.results[last.Step].answer(), nil
	}
	if err := p.readResult(ctx, last.Step, last.MemoryKey); err != nil { // its file may have been removed since
		return nil, err
	}
	r := p.results[last.Step]
	if r.ref == nil {
		return r.answer(), nil
	}
	var kept catalog.ArtifactPutResult
	_, err := p.submit(ctx, "artifact.put", catalog.ArtifactPut{From: r.ref.FileID, MediaType: resultType}, &kept)
	if _, ok := errors.AsType[*IntentError](err); ok {
		p.cfg.Log.WarnContext(ctx, "a large result is not kept", slog.String("plan_id", p.turn.PlanID), slog.String("error", err.Error()))
		return r.answer(), nil
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(bus.ArtifactData{
		Artifact: kept.Artifact, SizeBytes: kept.SizeBytes, MediaType: resultType, URL: bus.ArtifactURL(kept.Artifact), Sample: r.ref.Sample,
	})
}

// resultType is the type of a step's stored result: JSON, in a file with one element a line.
const resultType = "application/json"
