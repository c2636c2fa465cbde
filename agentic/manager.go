package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/ratelimit"
)

// taskLife is how long a task may take before its key expires.
const taskLife = 15 * time.Minute

// Manager takes turns, claims their plans and drives them: planner, one task
// per step, replans, the answer. It never touches a skill.
type Manager struct{ *driving }

// NewManager needs the manager's key.
func NewManager(cfg Config) *Manager {
	m := &Manager{newDriving(cfg, "manager")}
	m.work = m.take
	return m
}

// Serve takes hand-outs until ctx ends.
func (m *Manager) Serve(ctx context.Context, ready chan<- struct{}) error {
	return m.serve(ctx, bus.Service{
		Description: "drives plans", Endpoints: map[string]bus.Handler{
			bus.ClientPlans:        answer(m.cfg.Log, m.client),
			bus.Produce("manager"): answer(m.cfg.Log, m.produce),
		},
	}, ready)
}

// take drives one handed-out plan to its end, to a hold, or until ctx ends.
func (m *Manager) take(ctx context.Context, h bus.HandOut) {
	d, unfollow := m.begin(ctx, h)
	defer unfollow()
	d.heard, d.batches = make(map[string]*tokens), ratelimit.New(1, batchTime, ratelimit.Of(64), m.cfg.Now)
	err := d.reopening(ctx, d.run)
	if err == nil || ctx.Err() != nil {
		return
	}
	m.cfg.Log.WarnContext(ctx, "turn", slog.String("plan_id", h.PlanID), slog.String("error", model.Detailed(err)))
	var refused *OrderError
	if errors.As(err, &refused) && refused.Type == "plan.claim" {
		return // somebody else drives it
	}
	d.abandon(ctx, err)
}

// drive is one driver's work on a plan. plan is what the last move answered: only the
// moves of this driver's epoch are accepted.
type drive struct {
	cfg    Config
	sealer *Sealer
	turn   Turn
	driver string
	epoch  int

	plan    catalog.PlanView
	at      int64            // position of the move that left it so
	held    map[int]runReply // of tasks of this drive that wait, by step
	task    string           // the user's request
	soul    string
	results map[int]result
	answer  string                 // of a plan without steps, or of an agent
	agents  bool                   // there are some that steps may name
	agent   catalog.AgentGetResult // whose plan it is, if it is one's
	def     agents.Agent           // its definition; zero: of a planner's plan
	saying  *tokens                // of the agent's reply
	heard   map[string]*tokens     // of agents that it has asked, by the call
	batches *ratelimit.Limiter     // of statuses: one of a name at a time
	asked   routing
	gate    *catalog.Gated // the request is to be routed
	given   *catalog.Route // how it was
	// components of the agent's reply.
	components json.RawMessage
	used       []catalog.Usage // that no order has yet
	spent      bool            // a budget is

	// Of a run: what can be done about its nodes, the places for them, and how often in a
	// row a node was refused.
	next    []catalog.NextNode
	queue   *queue        // nil: the plan is none
	patched chan struct{} // its graph is another
	refused int
}

func (d *drive) order(ctx context.Context, typ string, args, result any) (*intents.Answer, error) {
	return d.sealer.Order(ctx, d.turn, Place{}, typ, args, result)
}

// move orders a move of the plan and goes on from what it answers.
func (d *drive) move(ctx context.Context, typ string, args any) error {
	var plan catalog.PlanView
	a, err := d.order(ctx, typ, args, &plan)
	if err == nil {
		d.take(plan, at(a), toldBy(a).Next)
	}
	return err
}

// take goes on from a plan as a move at a position of the record left it. Answers of
// moves that are made side by side may come in another order than the moves. Those of a
// run have no steps: they are as they were when the run was claimed or read. What is next
// they tell, and it is as old as they are.
func (d *drive) take(plan catalog.PlanView, position int64, next []catalog.NextNode) {
	if position < d.at {
		return
	}
	if plan.Run != nil && len(plan.Steps) == 0 {
		plan.Steps = d.plan.Steps
	}
	d.plan, d.at, d.next = plan, position, next
}

// at is the position of an answered order.
func at(a *intents.Answer) int64 {
	if a.Position == nil {
		return 0
	}
	return *a.Position
}

// frame shows something of the turn. Display has no effect, so a frame that
// cannot be published is only logged.
func (d *drive) frame(kind bus.FrameKind, data any) {
	msg, err := bus.NewFrame(kind, data)
	if err == nil {
		err = d.cfg.Bus.Publish(bus.Turn(d.turn.Tenant, d.turn.TurnID), msg)
	}
	if err != nil {
		d.cfg.Log.Warn("frame", slog.String("plan_id", d.turn.PlanID), slog.String("error", err.Error()))
	}
}

func (d *drive) status(state, message string, step int) {
	d.frame(bus.FrameStatus, bus.StatusData{State: state, Message: guarded(message), Step: step, PlanID: d.turn.PlanID})
}

// run claims the plan and moves it until it is final or held.
func (d *drive) run(ctx context.Context) error {
	if err := d.move(ctx, "plan.claim", catalog.PlanClaim{PlanID: d.turn.PlanID, Epoch: d.epoch, Driver: d.driver}); err != nil {
		return err
	}
	d.saying = d.tokens()
	d.task, d.answer, d.components, d.agents = d.plan.Task, d.plan.Response, d.plan.Components, d.plan.Agents // no other move tells these
	if d.plan.ByAgent {
		d.turn.Reminder = d.task
	}
	d.gate, d.given = d.plan.Gate, d.plan.Route
	if err := errors.Join(d.loadSoul(ctx), d.loadAgent(ctx)); err != nil {
		return err
	}
	if over, err := d.recall(ctx); over || err != nil {
		return err
	}
	if err := d.loadResults(ctx); err != nil {
		return err
	}
	for {
		switch d.plan.Status {
		case catalog.PlanPlanning, catalog.PlanReplanning:
			write := d.planning
			if d.gate != nil {
				write = d.route
			}
			if over, err := write(ctx); over || err != nil {
				return err
			}
		case catalog.PlanExecuting:
			if err := d.flow(ctx); err != nil {
				return err
			}
			if d.plan.Status != catalog.PlanExecuting {
				continue
			}
			if len(d.done()) == len(d.plan.Steps) {
				return d.complete(ctx)
			}
			if s := d.plan.Steps[0]; overWith(d.plan, s) {
				return d.failedAgent(ctx, s)
			}
			return d.waits(ctx)
		default:
			return fmt.Errorf("plan is %s", d.plan.Status)
		}
	}
}

// loadSoul: the persona feeds the prompts; without one the default holds.
func (d *drive) loadSoul(ctx context.Context) error {
	var soul catalog.Soul
	if _, err := d.order(ctx, "soul.get", catalog.SoulGet{}, &soul); err != nil {
		var refused *OrderError
		if errors.As(err, &refused) {
			return nil // the store of souls is down: orders that need it fail, others go on
		}
		return err
	}
	if p := soul.Persona; p != nil {
		d.soul = fmt.Sprintf("%s\n%s\nTone: %s\nLanguage: %s", p.Name, p.SystemPrompt, p.Tone, p.Language)
	}
	return nil
}

// loadResults reads the results of steps that an earlier driver completed.
func (d *drive) loadResults(ctx context.Context) error {
	d.results = make(map[int]result)
	for _, s := range d.plan.Steps {
		if s.Status == catalog.StepDone && s.MemoryKey != "" {
			if err := d.read(ctx, s.Step, s.MemoryKey); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads a step's result and confirms it, so that its lock is released.
func (d *drive) read(ctx context.Context, step int, key string) error {
	var got catalog.ReadMemoryResult
	if _, err := d.order(ctx, "read_memory", catalog.ReadMemory{Key: key, Confirm: true}, &got); err != nil {
		return err
	}
	d.results[step] = result{got.Data, got.Reference}
	return nil
}

func (d *drive) done() []int {
	out := []int{}
	for _, s := range d.plan.Steps {
		if s.Status == catalog.StepDone {
			out = append(out, s.Step)
		}
	}
	return out
}

// planning has a plan or a revision written. over says that the turn has ended.
func (d *drive) planning(ctx context.Context) (over bool, err error) {
	exhausted := len(d.plan.History) > catalog.MaxReplans
	if exhausted {
		return true, d.fail(ctx, "max replan attempts reached", "Several attempts did not succeed. The last one: "+d.plan.History[len(d.plan.History)-1].Reason)
	}
	d.status(string(d.plan.Status), "", 0)
	req := planRequest{Turn: d.turn, Task: d.task, Soul: d.soul, Epoch: d.epoch, Revision: d.plan.Revision + 1, FirstStep: 1, Agents: d.agents}
	for _, s := range d.plan.Steps {
		req.FirstStep = s.Step + 1
		switch {
		case s.Status == catalog.StepDone:
			done := d.results[s.Step].show(planShow)
			done.Step = s.PlanStep
			req.Completed = append(req.Completed, done)
		case s.Stays():
			req.Waiting = append(req.Waiting, s.PlanStep)
		case s.Status == catalog.StepPending:
			req.Remaining = append(req.Remaining, s.PlanStep)
		case req.Failed == nil && d.triggered(s):
			f := d.failedStep(s)
			req.Failed = &f
		default:
			req.Beside = append(req.Beside, d.failedStep(s))
		}
	}
	var place placeReply
	if err := delegate(ctx, d.cfg.Bus, bus.Agent("planner"), placeTime, placeRequest{}, &place); err != nil {
		return false, err
	}
	req.Turn.Grant = d.sealer.grantOf(d.turn)
	var reply planReply
	if err := d.helped(ctx, "planner", place.Instance, planTime, req.Turn.Grant, req, &reply, func(progress) {}); err != nil {
		return false, err
	}
	d.used = catalog.AddUsage(d.used, reply.Usage...)
	switch {
	case reply.Error != "":
		return true, d.fail(ctx, "planning failed: "+reply.Error, reply.Error)
	case reply.Plan == nil:
		return true, d.fail(ctx, "infeasible: "+reply.Reason, reply.Reason)
	}
	d.plan, d.answer = *reply.Plan, reply.Answer
	if n := len(d.plan.Steps) - len(d.done()); n > 0 {
		d.status("executing", fmt.Sprintf("%d steps", n), 0)
	}
	return false, nil
}

// triggered says that the plan is revised because of a step.
func (d *drive) triggered(s catalog.StepView) bool {
	n := len(d.plan.History)
	return n > 0 && d.plan.History[n-1].FailedStep == s.Step
}

func (d *drive) failedStep(s catalog.StepView) failedStep {
	f := failedStep{Step: s.PlanStep, Reason: s.FailureReason, Suggestion: s.Suggestion, Trigger: string(s.Status)}
	if d.triggered(s) {
		f.Trigger, f.Facts = d.plan.History[len(d.plan.History)-1].Trigger, d.plan.Facts
	}
	return f
}
