package agentic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// The plan of an MCP client needs no model: the manager opens its task, and the task signs the
// client's calls and its own end.

// clientLife is how long the task of a client's plan lives.
const clientLife = time.Hour

// clientEnd is the reply of such a task, and so the response of its plan.
const clientEnd = "The client has made its calls."

// client begins or closes the plan of a client for the gateway.
//
// A crash in here leaves a plan without a task, or one whose key is lost: the gateway ends it
// when it stays idle.
func (m *Manager) client(ctx context.Context, c bus.ClientPlan) bus.ClientPlanReply {
	turn, submitter := Turn{TurnRef: c.TurnRef}, m.cfg.submitter(*m.cfg.Key)
	if c.Close {
		_, err := submitter.Submit(ctx, turn, Place{}, "plan.close", catalog.PlanClose{PlanID: c.PlanID, Epoch: 1, Status: string(catalog.PlanComplete), Response: clientEnd}, nil)
		return clientPlanReply(err)
	}
	now := m.cfg.Now()
	until := now.Add(clientLife).UTC().Truncate(time.Second)
	task := catalog.Step{PlanID: c.PlanID, PlanDigest: c.Digest, Step: 1, Epoch: 1, TaskID: intents.NewTimedID(intents.KindTask, now), Deadline: until.Format(time.RFC3339)}
	if _, err := submitter.Submit(ctx, turn, Place{}, "plan.claim", catalog.PlanClaim{PlanID: c.PlanID, Epoch: 1, Driver: task.TaskID}, nil); err != nil {
		return clientPlanReply(err)
	}
	instance, err := prepareTask(ctx, m.cfg.Bus, &task)
	if err == nil {
		_, err = submitter.Submit(ctx, turn, Place{}, "step", task, nil)
	}
	reply := clientPlanReply(err)
	reply.TaskID, reply.Instance = task.TaskID, instance
	return reply
}

func clientPlanReply(err error) (r bus.ClientPlanReply) {
	if err != nil {
		r.Code, r.Reason = failure(err)
	}
	return r
}

// failure returns the code and the reason why an intent was not created.
func failure(err error) (code, reason string) {
	var refused *IntentError
	switch {
	case errors.As(err, &refused):
		return string(refused.Answer.Code), refused.Answer.Reason
	case errors.Is(err, bus.ErrNoResponders):
		return string(intents.DispatchUnavailable), err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return string(intents.ExecutorTimeout), err.Error()
	}
	return string(intents.Internal), err.Error()
}

type clientReply = bus.ClientReply[*intents.Answer]

// clientTask is the task of a client's plan. Its calls run concurrently.
type clientTask struct {
	submitter *Submitter
	until     time.Time
	calls     sync.WaitGroup // new calls without an answer yet

	mu      sync.Mutex              // guards the rest
	numbers map[string]numberedCall // by request
	ended   bool
}

// numberedCall is a call that was made: its number in the plan, its content, and once it is known
// to run its intent.
type numberedCall struct {
	number int
	asks   string
	intent string
}

// beginTime is how long a call keeps its place among the calls that are being made. By then it is
// recorded.
const beginTime = 2 * time.Second

// client signs a call of a client, or the end of its task. A call repeated by the transport has
// the number of the first one and so its answer, even when the task has ended.
func (t *Tasks) client(ctx context.Context, c bus.ClientCall) clientReply {
	task := t.clientTask(c.TaskID)
	if task == nil {
		return clientReply{Ended: true}
	}
	if c.End {
		return task.end(ctx, t.cfg.Log, c)
	}
	waiting, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	leave, err := t.calls.Wait(waiting, c.Tenant, keyOf(c.Grant), 0)
	if err != nil {
		return clientReply{Code: string(intents.Overloaded), Reason: "too many calls of clients are being made"}
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	number, done, reply := task.begin(c)
	if done == nil {
		return reply
	}
	defer done()
	if c.WaitMS > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, time.Duration(c.WaitMS)*time.Millisecond)
		defer end()
		defer time.AfterFunc(beginTime, leave).Stop()
	}
	a, err := task.submitter.Submit(ctx, Turn{TurnRef: c.TurnRef}, Place{Step: 1, TaskID: c.TaskID, Number: number}, c.Type, c.Args, nil)
	if a == nil {
		reply.Code, reply.Reason = failure(err)
		return reply
	}
	if a.Code == intents.InFlight {
		a.IntentID = task.running(c.Request, a.IntentID)
	}
	reply.Answer = a
	return reply
}

// running returns the intent of a call that runs: the first one that was signed for it.
func (t *clientTask) running(request, intent string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	call := t.numbers[request]
	call.intent = cmp.Or(call.intent, intent)
	t.numbers[request] = call
	return call.intent
}

// clientTask returns the task of an id, which begins at its first call; nil: its key is not here.
func (t *Tasks) clientTask(id string) *clientTask {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, fresh := t.keys[id]
	if fresh {
		delete(t.keys, id)
		t.clients[id] = &clientTask{submitter: t.cfg.submitter(key.key), until: key.until, numbers: make(map[string]numberedCall)}
	}
	return t.clients[id]
}

// begin accepts a call; done reports that it was answered; if done is nil, the call must not be
// made.
func (t *clientTask) begin(c bus.ClientCall) (number int, done func(), reply clientReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	call, before := t.numbers[c.Request]
	asks := intents.Digest(c.Args)
	switch {
	case before && call.asks != asks:
		reply.Code, reply.Reason = string(intents.ConflictIdempotency), "the session has made another call under this Idempotency-Key: use a key once"
		return 0, nil, reply
	case before:
		return call.number, func() {}, reply
	case t.ended || c.Type == "skill.call" && len(t.numbers) == catalog.MaxClientCalls:
		reply.Ended = true
		return 0, nil, reply
	case c.Type == "skill.call":
		number = len(t.numbers) + 1
		t.numbers[c.Request] = numberedCall{number: number, asks: asks}
	}
	t.calls.Add(1)
	return number, t.calls.Done, reply
}

// end signs the end of the task, once all of its calls have their answers.
func (t *clientTask) end(ctx context.Context, log *slog.Logger, c bus.ClientCall) (reply clientReply) {
	t.mu.Lock()
	was := t.ended
	t.ended = true
	t.mu.Unlock()
	if was {
		return reply
	}
	t.calls.Wait()
	finish := catalog.StepFinish{TaskID: c.TaskID, Status: taskDone, Reply: clientEnd}
	if _, err := t.submitter.Submit(ctx, Turn{TurnRef: c.TurnRef}, Place{Step: 1, TaskID: c.TaskID}, "step.finish", finish, nil); err != nil {
		log.InfoContext(ctx, "end of a client's task", slog.String("plan_id", c.PlanID), slog.String("error", fmt.Sprint(err)))
		reply.Code, reply.Reason = failure(err)
	}
	return reply
}
