package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/schemas"
)

// Limits of one task.
const (
	maxActions = 12 // thoughts about what to do next
	maxScripts = 3  // scripts for one extraction
)

// Tasks carries steps out, each with an ephemeral key that is made here, never
// leaves, and is dead when the task ends. A task cannot delegate: its key cannot
// sign for it.
type Tasks struct {
	cfg    Config
	grants *renewals

	mu   sync.Mutex // guards keys
	keys map[string]prepared
}

// prepared is the key of a task that has not begun. If its step is refused it never
// begins, and the key is forgotten at its deadline.
type prepared struct {
	key   intents.Signer
	until time.Time
}

// NewTasks needs no key.
func NewTasks(cfg Config) *Tasks {
	return &Tasks{cfg: cfg, grants: newRenewals(), keys: make(map[string]prepared)}
}

// Serve takes delegations until ctx ends.
func (t *Tasks) Serve(ctx context.Context, ready chan<- struct{}) error {
	instance := t.cfg.Bus.Instance()
	return t.cfg.Bus.Serve(ctx, bus.Service{
		Name: bus.ServiceName("task"), Version: "1.0.0", Description: "carries steps out", Queue: "task", Workers: workers,
		Endpoints: map[string]bus.Handler{
			bus.Agent("task"):                   answer(t.cfg.Log, t.prepare),
			bus.AgentInstance("task", instance): answer(t.cfg.Log, t.run),
			bus.Grant("task", instance):         answer(t.cfg.Log, t.grants.take),
		},
	}, ready)
}

// prepare makes the key of a task, and the proof that this process has it.
func (t *Tasks) prepare(_ context.Context, req taskRequest) taskReply {
	until, err := time.Parse(time.RFC3339Nano, req.Step.Deadline)
	if err != nil {
		return taskReply{Error: "the task has no deadline"}
	}
	key, err := intents.GenerateSigner(intents.RoleTask)
	if err != nil {
		return taskReply{Error: "no key could be made"}
	}
	step := req.Step
	step.JWK = key.VerificationKey().ToJWK()
	step.JWK.Role = ""
	step.PoP = ""
	if step.PoP, err = intents.SignPoP(key, step); err != nil {
		return taskReply{Error: "no proof of possession could be made"}
	}
	now := t.cfg.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.keys, func(_ string, p prepared) bool { return p.until.Before(now) })
	t.keys[step.TaskID] = prepared{key, until}
	return taskReply{Step: step, Instance: t.cfg.Bus.Instance()}
}

// run carries the step out and forgets the key.
func (t *Tasks) run(ctx context.Context, req runRequest) runReply {
	t.mu.Lock()
	task, ok := t.keys[req.TaskID]
	delete(t.keys, req.TaskID)
	t.mu.Unlock()
	if !ok {
		return runReply{Status: taskFailed, Reason: "the task's key is not here"}
	}
	deadline, err := time.Parse(time.RFC3339Nano, req.Deadline)
	if err != nil {
		return runReply{Status: taskFailed, Reason: "the task has no deadline"}
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	w := &worker{cfg: t.cfg, req: req, sealer: t.cfg.sealer(task.key), at: Place{req.Revision, req.Step.Step, req.TaskID}}
	unfollow := t.grants.follow(req.Turn, w.sealer)
	defer unfollow()
	defer cancel()
	return w.work(ctx)
}

// worker is one task at work.
type worker struct {
	cfg    Config
	req    runRequest
	sealer *Sealer
	at     Place

	schema json.RawMessage
	check  *schemas.Schema
	skills []model.Skill
	input  *material // the result of the step named by input_from_step
	last   *material // what the last call brought
	calls  []model.CallResult
}

// material is data that the step may work on: inline, or a file of the step.
type material struct {
	intentID string // the order that brought it; "from" of later ones
	inline   json.RawMessage
	ref      *catalog.Reference
	schema   json.RawMessage // declared by the skill
}

// from is how later orders name the data.
func (m *material) from() string {
	if m.ref != nil && m.ref.FileID != "" {
		return m.ref.FileID
	}
	return m.intentID
}

func (w *worker) order(ctx context.Context, typ string, args, result any) (*intents.Answer, error) {
	return w.sealer.Order(ctx, w.req.Turn, w.at, typ, args, result)
}

// work ends the step one way or another and says how.
func (w *worker) work(ctx context.Context) runReply {
	key, err := w.attempt(ctx)
	var stop *stopError
	var refused *OrderError
	switch {
	case err == nil:
		return w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskDone, MemoryKey: key})
	case errors.As(err, &stop):
		return w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskInsufficient, Reason: cut(cmp.Or(stop.reason, "the step cannot be done"), 1000), Suggestion: cut(stop.suggestion, 1000)})
	case errors.As(err, &refused) && refused.Answer.Code == intents.ApprovalRequired:
		return runReply{Status: taskHeld, Held: heldOf(refused)}
	case errors.As(err, &refused) && refused.Answer.Code == intents.ContractViolation:
		return runReply{Status: taskViolation, Reason: refused.Answer.Reason} // the record ended the step
	default:
		w.cfg.Log.WarnContext(ctx, "task", slog.String("plan_id", w.req.Turn.PlanID), slog.Int("step", w.req.Step.Step), slog.String("error", err.Error()))
		reason := plain(err)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			reason = "the step was not done by its deadline"
		}
		return w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskFailed, Reason: cut(reason, 1000)})
	}
}

func heldOf(e *OrderError) *bus.Approval {
	h := &bus.Approval{IntentID: e.Answer.IntentID, Type: e.Type, Reason: e.Answer.Reason}
	if d := e.Answer.Decision; d != nil {
		h.Approvers, h.PolicyIDs, h.URL = d.Approvers, d.PolicyIDs, e.Answer.Approval
		if d.Hold != nil {
			h.Deadline = d.Hold.Deadline
		}
	}
	return h
}

// finish seals the task's own end; its key is dead afterwards.
func (w *worker) finish(ctx context.Context, f catalog.StepFinish) runReply {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var plan catalog.PlanView
	if _, err := w.order(ctx, "step.finish", f, &plan); err != nil {
		w.cfg.Log.WarnContext(ctx, "step.finish", slog.String("plan_id", w.req.Turn.PlanID), slog.Int("step", w.req.Step.Step), slog.String("error", err.Error()))
		return runReply{Status: f.Status, Reason: f.Reason}
	}
	return runReply{Status: f.Status, Reason: f.Reason, Plan: &plan}
}

// stopError says that the step cannot be done, and why.
type stopError struct{ reason, suggestion string }

func (e *stopError) Error() string { return e.reason }

// attempt does the step and returns the key of its result.
func (w *worker) attempt(ctx context.Context) (string, error) {
	var err error
	if w.schema, err = schemas.CompileShape(w.req.Step.ReturnSpec.Shape); err != nil {
		return "", &stopError{"return_spec.shape does not compile", "revise the step's return_spec"}
	}
	if w.check, err = schemas.Compile(w.schema); err != nil {
		return "", &stopError{"return_spec.shape does not compile", "revise the step's return_spec"}
	}
	if err := w.load(ctx); err != nil {
		return "", err
	}
	if err := w.again(ctx); err != nil {
		return "", err
	}
	var violations []string
	for range maxActions {
		act, err := w.choose(ctx, violations)
		if err != nil {
			return "", err
		}
		violations = nil
		switch act.Action {
		case model.ActCall:
			if err := w.call(ctx, act); err != nil {
				return "", err
			}
		case model.ActExtract, model.ActFinish:
			m := w.last
			if m == nil {
				m = w.input
			}
			if m == nil {
				violations = []string{"there is no data yet: call a skill first"}
				continue
			}
			if act.Action == model.ActFinish && m.ref == nil && len(w.check.ValidateWithin(ctx, m.inline)) == 0 {
				return w.remember(ctx, m.intentID)
			}
			return w.extract(ctx, m)
		case model.ActInsufficient:
			return "", &stopError{act.Reason, act.Suggestion}
		default:
			violations = []string{fmt.Sprintf("no action %q", act.Action)}
		}
	}
	return "", &stopError{"no result after many attempts", "split the step, or use another skill"}
}

// again repeats the calls that people have approved, exactly as they were: each is
// the order that was held, and gets its result. A model might write the call
// differently, and people would be asked again.
func (w *worker) again(ctx context.Context) error {
	for _, f := range w.req.Done {
		var a catalog.SkillCall
		if f.Type != "skill.call" || json.Unmarshal(f.Args, &a) != nil || a.From != "" {
			continue
		}
		if err := w.call(ctx, model.ActionOutput{Action: model.ActCall, Skill: a.Skill, Input: a.Input}); err != nil {
			return err
		}
	}
	return nil
}

// load reads what the step starts from: the manifests of its skills and the
// result of an earlier step.
func (w *worker) load(ctx context.Context) error {
	for _, name := range w.req.Step.Skills {
		var m catalog.Manifest
		if _, err := w.order(ctx, "skill.load", catalog.SkillLoad{Skill: name}, &m); err != nil {
			return err
		}
		w.skills = append(w.skills, model.Skill{Name: m.Name, Description: m.Description, InputSchema: m.InputSchema, OutputSchema: m.OutputSchema, Effect: string(m.Effect)})
	}
	if w.req.InputKey == "" {
		return nil
	}
	var got catalog.ReadMemoryResult
	a, err := w.order(ctx, "read_memory", catalog.ReadMemory{Key: w.req.InputKey}, &got)
	if err != nil {
		return err
	}
	w.input = &material{intentID: a.IntentID, inline: got.Data, ref: got.Reference}
	return nil
}

func (w *worker) choose(ctx context.Context, violations []string) (model.ActionOutput, error) {
	in := model.ActionInput{
		Task: w.req.Step.Task, UserTask: w.req.UserTask, Step: w.req.Step.Step, Skills: w.skills,
		ReturnSpec: w.req.Step.ReturnSpec, Schema: w.schema, Calls: w.calls, Violations: violations,
	}
	if w.input != nil {
		in.Input = w.input.inline
		if in.Input == nil && w.input.ref != nil {
			in.Input, _ = json.Marshal(w.input.ref.Sample) // strings
		}
	}
	out, _, err := model.Think[model.ActionInput, model.ActionOutput](ctx, w.cfg.Model, model.ChooseAction, model.Instructions(model.ChooseAction, w.req.Soul), in)
	return out, err
}

// call calls a skill. A refusal of the call itself is told to the model; a hold
// or anything that is about the task ends it.
func (w *worker) call(ctx context.Context, act model.ActionOutput) error {
	var got catalog.SkillCallResult
	a, err := w.order(ctx, "skill.call", catalog.SkillCall{Skill: act.Skill, Input: act.Input}, &got)
	result := model.CallResult{Skill: act.Skill, Input: act.Input}
	var refused *OrderError
	switch {
	case errors.As(err, &refused) && tellable(refused.Answer.Code):
		result.Error = told(refused)
		w.calls = append(w.calls, result)
		return nil
	case err != nil:
		return err
	}
	w.last = &material{intentID: a.IntentID, inline: got.Output, ref: got.Reference}
	for _, s := range w.skills {
		if s.Name == act.Skill {
			w.last.schema = s.OutputSchema
		}
	}
	result.Output = got.Output
	if got.Reference != nil {
		result.Large, result.SizeBytes = true, got.SizeBytes
	}
	w.calls = append(w.calls, result)
	return nil
}

// told says why a call was refused or failed: the code, the reason, and what the
// skill itself or its schema says.
func told(e *OrderError) string {
	s := string(e.Answer.Code) + ": " + e.Answer.Reason
	var said struct {
		Error      string              `json:"error"`
		Violations []schemas.Violation `json:"violations"`
	}
	if o := e.Answer.Outcome; o != nil && json.Unmarshal(o.Result, &said) == nil {
		if said.Error != "" {
			s += ": " + said.Error
		}
		for _, v := range said.Violations {
			s += "; " + v.Pointer + " " + v.Reason
		}
	}
	return cut(s, 4000)
}

// tellable codes are about the call itself, so the model is told and may try
// something else.
func tellable(c intents.Code) bool {
	switch c {
	case intents.ExecutorFailed, intents.ExecutorTimeout, intents.MalformedArgs, intents.TaskScope, intents.PolicyDenied,
		intents.DispatchUnavailable, intents.SchemaInvalid, intents.Indeterminate, intents.ConflictIdempotency:
		return true
	default:
		return false
	}
}

// remember stores the result of an order as the step's result.
func (w *worker) remember(ctx context.Context, from string) (string, error) {
	var got catalog.WriteMemoryResult
	_, err := w.order(ctx, "write_memory", catalog.WriteMemory{Label: label(w.req.Step.Task), From: from}, &got)
	return got.Key, err
}

var notLabel = regexp.MustCompile(`[^a-z0-9]+`)

// label names a result after the step's task: at most 40 characters of [a-z0-9_].
func label(task string) string {
	s := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(task), "_"), "_")
	if len(s) > 40 {
		s = strings.TrimRight(s[:40], "_")
	}
	if s == "" {
		return "result"
	}
	return s
}
