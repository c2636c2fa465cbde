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
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/schemas"
)

// Tasks carries steps out, each with an ephemeral key that is made here, never
// leaves, and is dead when the task ends. What agents are asked is carried out here, too.
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
	if cfg.Asked == nil {
		cfg.Asked = func(string, time.Duration, string) {}
	}
	return &Tasks{cfg: cfg, grants: newRenewals(), keys: make(map[string]prepared)}
}

// Serve takes delegations until ctx ends.
func (t *Tasks) Serve(ctx context.Context, ready chan<- struct{}) error {
	instance := t.cfg.Bus.Instance()
	return t.cfg.Bus.Serve(ctx, bus.Service{
		Name: bus.ServiceName("task"), Version: "1.0.0", Description: "carries steps out", Queue: "task", Workers: workers,
		Endpoints: map[string]bus.Handler{
			bus.Agent("task"):           answer(t.cfg.Log, t.prepare),
			bus.Grant("task", instance): answer(t.cfg.Log, t.grants.take),
		},
		Talkers: map[string]bus.Talker{bus.AgentInstance("task", instance): talking(t.cfg.Log, t.talk)},
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

// talk is run, and says how it comes along.
func (t *Tasks) talk(ctx context.Context, req runRequest, say func(progress)) runReply {
	req.say = say
	return t.run(ctx, req)
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
	return t.work(ctx, task.key, req)
}

// work has a task do its work with a key that is in force.
func (t *Tasks) work(ctx context.Context, key intents.Signer, req runRequest) runReply {
	deadline, err := time.Parse(time.RFC3339Nano, req.Deadline)
	if err != nil {
		return runReply{Status: taskFailed, Reason: "the task has no deadline"}
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	w := &worker{cfg: t.cfg, tasks: t, req: req, sealer: t.cfg.sealer(key), at: Place{Revision: req.Revision, Step: req.Step.Step, TaskID: req.TaskID, Ask: req.Ask}, material: make(map[string]*material), before: make(map[string][]catalog.TranscriptCall)}
	unfollow := t.grants.follow(req.Turn, w.sealer)
	defer unfollow()
	defer cancel()
	return w.work(ctx)
}

// worker is one task at work.
type worker struct {
	cfg    Config
	tasks  *Tasks
	req    runRequest
	sealer *Sealer
	at     Place

	schema  json.RawMessage // of the result
	check   *schemas.Schema
	returns []skillReturns // what skills declare
	loop    *loop
	others  []catalog.OtherAgent // that may be asked
	key     string               // of the result, once it is remembered
	show    *tokens              // of an agent's reply; nil: of none
	reply   string               // of an agent
	stop    *stopError           // the model says that the step cannot be done

	mu       sync.Mutex // guards the rest: calls run side by side
	material map[string]*material
	// before are calls of earlier tasks that are done or wait, by what they ask for.
	before map[string][]catalog.TranscriptCall
	// components of the answer, as they were rendered.
	components []component
}

// inputLabel is the label of the result that a step starts from. Where there are
// several, s1 is that of step 1.
const inputLabel = "r0"

// material is data that the step may work on: inline, or a file of the step.
type material struct {
	intentID string // the order that brought it; "from" of later ones
	inline   json.RawMessage
	ref      *catalog.Reference
}

// from is how later orders name the data.
func (m *material) from() string {
	if m.ref != nil && m.ref.FileID != "" {
		return m.ref.FileID
	}
	return m.intentID
}

// labelled is a result as a model reads it: the data, or the size and the first lines of
// what is too large to be inline.
type labelled struct {
	Label     string          `json:"label"`
	Result    json.RawMessage `json:"result,omitempty"`
	SizeBytes int64           `json:"size_bytes,omitempty"`
	Sample    []string        `json:"sample,omitempty"`
	Format    string          `json:"format,omitempty"` // json: one document; jsonl: one a line
	// AlreadyDone: an earlier task of the step has made the call.
	AlreadyDone bool `json:"already_done,omitempty"`
}

// keep gives data a label, under which later calls name it.
func (w *worker) keep(label, intentID string, inline json.RawMessage, ref *catalog.Reference) labelled {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.material[label] = &material{intentID, inline, ref}
	if ref == nil {
		return labelled{Label: label, Result: inline}
	}
	format := "json"
	if oneDocumentALine(ref.Sample) {
		format = "jsonl"
	}
	return labelled{Label: label, SizeBytes: ref.SizeBytes, Sample: ref.Sample, Format: format}
}

// oneDocumentALine says that each of the first two lines is a JSON document.
func oneDocumentALine(lines []string) bool {
	return len(lines) > 1 && json.Valid([]byte(lines[0])) && json.Valid([]byte(lines[1]))
}

// find finds data by its label.
func (w *worker) find(label string) (*material, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.material[label]
	if !ok {
		return nil, mistaken("from: there is no result %q", label)
	}
	return m, nil
}

func (w *worker) order(ctx context.Context, typ string, args, result any) (*intents.Answer, error) {
	at := w.at
	at.Call = callOf(ctx)
	return w.sealer.Order(ctx, w.req.Turn, at, typ, args, result)
}

// work ends the step one way or another and says how.
func (w *worker) work(ctx context.Context) runReply {
	err := w.attempt(ctx)
	var stop *stopError
	var refused *OrderError
	switch {
	case err == nil:
		return w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskDone, MemoryKey: w.key, Reply: w.reply, Components: w.rendered()})
	case errors.As(err, &stop):
		return w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskInsufficient, Reason: cut(cmp.Or(stop.reason, "the step cannot be done"), 1000), Suggestion: cut(stop.suggestion, 1000)})
	case errors.As(err, &refused) && refused.Answer.Code == intents.ApprovalRequired:
		end := catalog.StepFinish{TaskID: w.req.TaskID, Status: taskHeld}
		if w.loop != nil {
			end.Reply = cut(guarded(strings.TrimSpace(w.loop.waiting(ctx))), maxResponse)
			if w.show != nil {
				w.show.flush(true)
			}
		}
		reply := w.finish(ctx, end)
		reply.Held, reply.Refused = heldOf(refused), refused
		return reply
	case errors.As(err, &refused) && refused.Answer.Code == intents.ContractViolation:
		return runReply{Status: taskViolation, Reason: refused.Answer.Reason} // the record ended the step
	default:
		w.cfg.Log.WarnContext(ctx, "task", slog.String("plan_id", w.req.Turn.PlanID), slog.Int("step", w.req.Step.Step), slog.String("error", model.Detailed(err)))
		reason, late := plain(err), errors.Is(ctx.Err(), context.DeadlineExceeded)
		if late {
			reason = "the step was not done by its deadline"
		}
		reply := w.finish(ctx, catalog.StepFinish{TaskID: w.req.TaskID, Status: taskFailed, Reason: cut(reason, 1000)})
		reply.TimedOut = late
		return reply
	}
}

func heldOf(e *OrderError) *bus.Approval {
	h := &bus.Approval{IntentID: e.Answer.IntentID, Type: e.Type, Reason: e.Answer.Reason, URL: e.Answer.Approval}
	if d := e.Answer.Decision; d != nil {
		h.Approvers, h.PolicyIDs = d.Approvers, d.PolicyIDs
		if slices.Equal(d.PolicyIDs, []string{intents.RuleUnsettled}) {
			h.Hint = d.Hint
		}
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
	var asked routing
	if w.loop != nil {
		f.Usage, f.Dropped = w.loop.used, w.loop.dropped
	}
	if w.loop != nil && w.req.Agent != "" {
		asked = w.loop.routing()
		if w.loop.noData > 0 {
			errorEmit(ctx, w.cfg.Log, w.req.Agent, axisData, false)
		}
	}
	var plan catalog.PlanView
	a, err := w.order(ctx, "step.finish", f, &plan)
	if err != nil {
		w.cfg.Log.WarnContext(ctx, "step.finish", slog.String("plan_id", w.req.Turn.PlanID), slog.Int("step", w.req.Step.Step), slog.String("error", err.Error()))
		return runReply{Status: f.Status, Reason: f.Reason}
	}
	if told := toldBy(a); told.Facts != nil {
		plan.Facts = told.Facts
	}
	return runReply{Status: f.Status, Reason: f.Reason, Plan: &plan, At: at(a), Reply: f.Reply, Components: f.Components, Partial: w.loop != nil && w.loop.noData > 0, Routing: asked}
}

// stopError says that the step cannot be done, and why.
type stopError struct{ reason, suggestion string }

func (e *stopError) Error() string { return e.reason }

// attempt runs the executor until the result of the step is remembered.
func (w *worker) attempt(ctx context.Context) error {
	if w.req.Agent != "" {
		return w.asAgent(ctx)
	}
	if err := w.compileShape(); err != nil {
		return err
	}
	tools, err := w.tools(ctx)
	if err != nil {
		return err
	}
	message, err := w.message(ctx)
	if err != nil {
		return err
	}
	agent := agents.Builtin(agents.Executor)
	w.loop = &loop{
		model: w.cfg.Model, agent: agent, tools: w.watched(tools, agent),
		req: request(agent, w.req.Soul, w.req.Turn, w.cfg.Now(), message),
	}
	if err := w.resume(ctx); err != nil || w.key != "" { // all that was missing is its end
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
	return err
}

// compileShape reads what the step's result has to be.
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

// skillReturns is what a skill returns, by JSON Schema. The tools of models have no
// place for it.
type skillReturns struct {
	Tool   string          `json:"tool"`
	Schema json.RawMessage `json:"schema"`
}

// stepBlock is the step as the model reads it.
type stepBlock struct {
	catalog.PlanStep
	ReturnSchema json.RawMessage `json:"return_schema"`
}

// message is what the executor is told: the user's request, effects of other steps that
// are not done, the step, and the results that it starts from.
func (w *worker) message(ctx context.Context) (string, error) {
	var m blocks
	m.add("Request", w.req.UserTask)
	if len(w.returns) > 0 {
		m.add("Returns", w.returns)
	}
	if len(w.req.Effects) > 0 {
		m.add("Effects", w.req.Effects)
	}
	m.add("Step", stepBlock{w.req.Step, w.schema})
	inputs := make([]labelled, len(w.req.Inputs))
	for i, in := range w.req.Inputs {
		var got catalog.ReadMemoryResult
		a, err := w.order(ctx, "read_memory", catalog.ReadMemory{Key: in.Key}, &got)
		if err != nil {
			return "", err
		}
		name := inputLabel
		if len(inputs) > 1 {
			name = fmt.Sprintf("s%d", in.Step)
		}
		inputs[i] = w.keep(name, a.IntentID, got.Data, got.Reference)
	}
	switch len(inputs) {
	case 0:
	case 1:
		m.add("Input", inputs[0])
	default:
		m.add("Input", inputs)
	}
	return m.task(w.req.Step.Task), nil
}

// tools are the skills that the step allows, and the built-in tools.
func (w *worker) tools(ctx context.Context) ([]*tool, error) {
	manifests := make([]catalog.Manifest, len(w.req.Step.Skills))
	for i, name := range w.req.Step.Skills {
		if _, err := w.order(ctx, "skill.load", catalog.SkillLoad{Skill: name}, &manifests[i]); err != nil {
			return nil, err
		}
	}
	builtin := []*tool{
		newTool(tool{Tool: readLinesTool, call: called(w.readLines)}),
		newTool(tool{Tool: execPythonTool, call: called(w.python)}),
		newTool(tool{Tool: writeMemoryTool, output: true, call: called(w.remember)}),
		newTool(tool{Tool: insufficientTool, output: true, call: called(func(_ context.Context, _ string, a insufficientArgs) (any, error) {
			w.stop = &stopError{a.Reason, a.Suggestion}
			return nil, nil
		})},
		),
	}
	taken := map[string]bool{}
	for _, t := range builtin {
		taken[t.Name] = true
	}
	var all []*tool
	for i, name := range wireNames(manifests, taken) {
		m := manifests[i]
		all = append(all, w.skill(m, name))
		if len(m.OutputSchema) > 0 {
			w.returns = append(w.returns, skillReturns{name, m.OutputSchema})
		}
	}
	return append(all, builtin...), nil
}

// maxAbout bounds the description of a skill, in bytes: servers cut longer ones, and
// its effect stands behind it.
const maxAbout = 1000

// skill is a skill as a tool. Its server judges the input, so a schema that this
// system cannot compile is no hindrance.
func (w *worker) skill(m catalog.Manifest, wire string) *tool {
	check, _ := schemas.Compile(m.InputSchema)
	if renders(m) {
		return w.render(m, wire)
	}
	return &tool{
		Tool:  model.Tool{Name: wire, Description: cut(m.Description, maxAbout) + "\nEffect: " + string(m.Effect) + ".", Schema: m.InputSchema},
		check: check,
		once:  m.Effect == catalog.Once,
		call: func(ctx context.Context, label string, input json.RawMessage) (any, error) {
			args := catalog.SkillCall{Skill: m.Name, Input: input}
			if m.Effect == catalog.Once {
				if result, err, ok := w.already("skill.call", args, label); ok {
					return result, err
				}
			}
			w.say(progress{Skill: m.Name})
			var got catalog.SkillCallResult
			a, err := w.order(ctx, "skill.call", args, &got)
			if err != nil {
				return nil, err
			}
			return w.keep(label, a.IntentID, got.Output, got.Reference), nil
		},
	}
}

// readLines reads lines of a large result.
func (w *worker) readLines(ctx context.Context, _ string, a readLinesArgs) (any, error) {
	m, err := w.find(a.From)
	if err != nil {
		return nil, err
	}
	if m.ref == nil {
		return nil, mistaken("from: %s is not large, you have all of it", a.From)
	}
	var got catalog.ReadLinesResult
	_, err = w.order(ctx, "read_lines", catalog.ReadLines{FileID: m.ref.FileID, Start: a.Start, N: a.N}, &got)
	return got, err
}

// python runs a script over a result, or several.
func (w *worker) python(ctx context.Context, label string, a execPythonArgs) (any, error) {
	args := catalog.ExecPython{Script: a.Script}
	if a.From != "" {
		if len(a.Inputs) > 0 {
			return nil, mistaken("from or inputs, not both")
		}
		m, err := w.find(a.From)
		if err != nil {
			return nil, err
		}
		args.From = m.from()
	}
	for _, label := range a.Inputs {
		m, err := w.find(label)
		if err != nil {
			return nil, err
		}
		if args.Inputs == nil {
			args.Inputs = make(map[string]string)
		}
		args.Inputs[label] = m.from()
	}
	var got catalog.ExecPythonResult
	answer, err := w.order(ctx, "exec_python", args, &got)
	if err != nil {
		return nil, err
	}
	return w.keep(label, answer.IntentID, got.Output, got.Reference), nil
}

// remember stores the result of the step. What can be checked here is: an order of
// write_memory that breaks the contract ends the step.
func (w *worker) remember(ctx context.Context, _ string, a writeMemoryArgs) (any, error) {
	args := catalog.WriteMemory{Label: label(w.req.Step.Task), Data: a.Data}
	inline := a.Data
	if a.From != "" {
		m, err := w.find(a.From)
		if err != nil {
			return nil, err
		}
		args.From, inline = m.intentID, m.inline
	}
	if len(inline) > 0 {
		var wrong []string
		for _, v := range w.check.ValidateWithin(ctx, inline) {
			wrong = append(wrong, v.Pointer+": "+v.Reason)
		}
		if len(wrong) > 0 {
			return nil, &mistake{wrong[:min(len(wrong), maxViolations)]}
		}
	}
	var got catalog.WriteMemoryResult
	_, err := w.order(ctx, "write_memory", args, &got)
	w.key = got.Key
	return nil, err
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
