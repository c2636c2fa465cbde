package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// The plan of an MCP client is thought of by nobody here: the manager opens its task, and
// the task seals what the client calls, and its end.

// clientLife is how long the task of a client's plan lives.
const clientLife = time.Hour

// clientEnd is the reply of such a task, and so the response of its plan.
const clientEnd = "The client has made its calls."

func turnOf(c bus.ClientTurn) Turn {
	return Turn{Tenant: c.Tenant, UserID: c.UserID, SessionID: c.SessionID, TurnID: c.TurnID, PlanID: c.PlanID, TraceID: c.TraceID, Grant: c.Grant}
}

// client begins or closes the plan of a client for the gateway.
//
// A crash in here leaves a plan without a task, or one whose key nobody has: the gateway
// ends it when nothing comes of it.
func (m *Manager) client(ctx context.Context, c bus.ClientPlan) bus.ClientPlanReply {
	turn, sealer := turnOf(c.ClientTurn), m.cfg.sealer(*m.cfg.Key)
	if c.Close {
		_, err := sealer.Order(ctx, turn, Place{}, "plan.close", catalog.PlanClose{PlanID: c.PlanID, Epoch: 1, Status: string(catalog.PlanComplete), Response: clientEnd}, nil)
		return clientPlanReply(err)
	}
	now := m.cfg.Now()
	until := now.Add(clientLife).UTC().Truncate(time.Second)
	task := catalog.Step{PlanID: c.PlanID, PlanDigest: c.Digest, Step: 1, Epoch: 1, TaskID: intents.NewTimedID(intents.KindTask, now), Deadline: until.Format(time.RFC3339)}
	if _, err := sealer.Order(ctx, turn, Place{}, "plan.claim", catalog.PlanClaim{PlanID: c.PlanID, Epoch: 1, Driver: task.TaskID}, nil); err != nil {
		return clientPlanReply(err)
	}
	instance, err := prepareTask(ctx, m.cfg.Bus, turn, &task)
	if err == nil {
		_, err = sealer.Order(ctx, turn, Place{}, "step", task, nil)
	}
	reply := clientPlanReply(err)
	reply.TaskID, reply.Instance, reply.Until = task.TaskID, instance, until
	return reply
}

func clientPlanReply(err error) (r bus.ClientPlanReply) {
	if err != nil {
		r.Code, r.Reason = failure(err)
	}
	return r
}

// failure is the code and the reason of what has kept an order from being made.
func failure(err error) (code, reason string) {
	var refused *OrderError
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

// clientTask is the task of a client's plan. Its calls are made side by side.
type clientTask struct {
	sealer *Sealer
	until  time.Time
	calls  sync.WaitGroup // that were new and have no answer yet

	mu      sync.Mutex              // guards the rest
	numbers map[string]numberedCall // by request
	ended   bool
}

// numberedCall is a call that was made: its number in the plan, and what it asks for.
type numberedCall struct {
	number int
	asks   string
}

// client seals a call of a client, or the end of its task. What is sent again by the transport
// has the number of the first, and so its answer, also when the task has ended.
func (t *Tasks) client(ctx context.Context, c bus.ClientCall) bus.ClientReply {
	task := t.clientTask(c.TaskID)
	if task == nil {
		return bus.ClientReply{Over: true}
	}
	if c.End {
		return task.end(ctx, t.cfg.Log, c)
	}
	number, done, reply := task.begin(c)
	if done == nil {
		return reply
	}
	defer done()
	a, err := task.sealer.Order(ctx, turnOf(c.ClientTurn), Place{Step: 1, TaskID: c.TaskID, Number: number}, c.Type, c.Args, nil)
	if a == nil {
		reply.Code, reply.Reason = failure(err)
		return reply
	}
	reply.Answer, _ = json.Marshal(a) // it was read from JSON
	return reply
}

// clientTask is the task of an id, which begins at its first call; nil: its key is not here.
func (t *Tasks) clientTask(id string) *clientTask {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, fresh := t.keys[id]
	if fresh {
		delete(t.keys, id)
		t.clients[id] = &clientTask{sealer: t.cfg.sealer(key.key), until: key.until, numbers: make(map[string]numberedCall)}
	}
	return t.clients[id]
}

// begin takes a call; done says that it was answered; nil: it is not to be made.
func (t *clientTask) begin(c bus.ClientCall) (number int, done func(), reply bus.ClientReply) {
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
		reply.Over = true
		return 0, nil, reply
	case c.Type == "skill.call":
		number = len(t.numbers) + 1
		t.numbers[c.Request] = numberedCall{number, asks}
	}
	t.calls.Add(1)
	return number, t.calls.Done, reply
}

// end seals the end of the task, once all of its calls have their answers.
func (t *clientTask) end(ctx context.Context, log *slog.Logger, c bus.ClientCall) (reply bus.ClientReply) {
	t.mu.Lock()
	was := t.ended
	t.ended = true
	t.mu.Unlock()
	if was {
		return reply
	}
	t.calls.Wait()
	finish := catalog.StepFinish{TaskID: c.TaskID, Status: taskDone, Reply: clientEnd}
	if _, err := t.sealer.Order(ctx, turnOf(c.ClientTurn), Place{Step: 1, TaskID: c.TaskID}, "step.finish", finish, nil); err != nil {
		log.InfoContext(ctx, "end of a client's task", slog.String("plan_id", c.PlanID), slog.String("error", fmt.Sprint(err)))
		reply.Code, reply.Reason = failure(err)
	}
	return reply
}
