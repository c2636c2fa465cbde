package agentic

import (
	"context"
	"maps"
	"sync"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/ratelimit"
)

// Tasks executes steps, each with an ephemeral key that is created here, never leaves, and is
// invalid when the task ends. Asked agents run here too.
type Tasks struct {
	cfg    Config
	grants *renewals
	steps  *ratelimit.Places // of steps in execution
	calls  *ratelimit.Places // likewise, of clients' calls

	mu      sync.Mutex // guards keys and clients
	keys    map[string]preparedTask
	clients map[string]*clientTask // that have begun, by id, until their deadline
}

// preparedTask is the key of a task that has not begun. If its step is refused it never begins,
// and the key is dropped at its deadline.
type preparedTask struct {
	key   intents.Signer
	until time.Time
}

// NewTasks requires no key.
func NewTasks(cfg Config) *Tasks {
	if cfg.CountAsk == nil {
		cfg.CountAsk = func(string, time.Duration, time.Duration, string) {}
	}
	return &Tasks{cfg: cfg, grants: newRenewals(), steps: ratelimit.NewPlaces(workers), calls: ratelimit.NewPlaces(workers), keys: make(map[string]preparedTask), clients: make(map[string]*clientTask)}
}

// Serve accepts delegations until ctx ends.
func (t *Tasks) Serve(ctx context.Context, ready chan<- struct{}) error {
	instance := t.cfg.Bus.Instance()
	return t.cfg.Bus.Serve(ctx, bus.Service{
		Name: bus.ServiceName("task"), Version: "1.0.0", Description: "carries steps out", Queue: "task", Workers: atOnce,
		Endpoints: map[string]bus.Handler{
			bus.Agent("task"):           answer(t.cfg.Log, t.prepare),
			bus.Grant("task", instance): answer(t.cfg.Log, t.grants.take),
			bus.ClientCalls(instance):   answer(t.cfg.Log, t.client),
		},
		Talkers: map[string]bus.Talker{bus.AgentInstance("task", instance): talking(t.cfg.Log, t.talk)},
	}, ready)
}

// prepare creates the key of a task, and the proof that this process has it.
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
	maps.DeleteFunc(t.keys, func(_ string, p preparedTask) bool { return p.until.Before(now) })
	maps.DeleteFunc(t.clients, func(_ string, c *clientTask) bool { return c.until.Before(now) })
	t.keys[step.TaskID] = preparedTask{key, until}
	return taskReply{Step: step, Instance: t.cfg.Bus.Instance()}
}

// talk is run with progress reports.
func (t *Tasks) talk(ctx context.Context, req runRequest, say func(progress)) runReply {
	req.say = say
	return t.run(ctx, req)
}

// run executes the step and drops the key.
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

// work has a task do its work with a registered key.
func (t *Tasks) work(ctx context.Context, key intents.Signer, req runRequest) runReply {
	deadline, err := time.Parse(time.RFC3339Nano, req.Deadline)
	if err != nil {
		return runReply{Status: taskFailed, Reason: "the task has no deadline"}
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	ctx = logging.By(logging.In(ctx, req.Turn.TraceID), "task", "step")
	cfg := t.cfg
	cfg.Log = logging.WithContext(ctx, cfg.Log)
	w := &worker{cfg: cfg, tasks: t, req: req, submitter: t.cfg.submitter(key), place: Place{Revision: req.Revision, Step: req.Step.Step, TaskID: req.TaskID, Ask: req.Ask}, material: make(map[string]*material), before: make(map[string][]catalog.TranscriptCall)}
	ctx, unfollow := t.grants.follow(ctx, req.Turn, w.submitter, nil)
	defer unfollow()
	defer cancel()
	if req.Ask == "" { // otherwise it uses the place of the asking task
		leave, err := t.steps.Wait(ctx, req.Turn.Tenant, keyOf(req.Turn.Grant), 0)
		if err != nil {
			return runReply{Status: taskFailed, Reason: "the step had no turn before its deadline"}
		}
		defer leave()
	}
	return w.work(model.Showing(ctx, func(body []byte) { w.say(progress{Request: body}) }))
}
