package router

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/clock"
)

const (
	// askTime bounds one question to an executor what became of an intent.
	askTime = time.Second
	// acknowledgeAfter an outcome is durable, its executor may drop the report. Those of that time
	// share one message.
	acknowledgeAfter = time.Second
	// acknowledged at most in one message.
	maxAcknowledged = 4096
)

// keptReport asks the executor of an intent what became of its current attempt, and waits for the
// report as long as it runs. known is false if its executor answers and knows nothing of it, or if
// none answers until a time. Only the processes of the executor know of an attempt: one that has
// ended since forgets it.
func (r *Router) keptReport(ctx context.Context, x *execution, until time.Time) (report []byte, known bool) {
	for unknown := 0; ; {
		reply := r.askExecutor(ctx, x)
		if unknown++; reply.State != bus.ReportUnknown || !r.settled() {
			unknown = 0 // its ticket may still be begun
		}
		switch {
		case reply.State == bus.ReportDone:
			return reply.Report, true
		case unknown == r.unknownReplies(), ctx.Err() != nil:
			return nil, false
		case reply.State == "" && r.settled() && !time.Now().Before(until):
			return nil, false
		}
		if clock.Sleep(ctx, listenerPause) != nil {
			return nil, false
		}
	}
}

// unknownReplies is how many replies in a row must know nothing of an attempt. Beside other
// processes of its executor, the one that began it may be late.
func (r *Router) unknownReplies() int {
	if r.cfg.Term == nil {
		return 1
	}
	return 3
}

// askExecutor asks once; the reply has no state if none came.
func (r *Router) askExecutor(ctx context.Context, x *execution) (reply bus.ReportReply) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	q, err := json.Marshal(bus.ReportRequest{Attempt: bus.Attempt{IntentID: x.env.ID(), Number: x.attempt}})
	if err != nil {
		return bus.ReportReply{}
	}
	raw, err := r.cfg.Bus.Request(ctx, bus.Reports(x.row.Executor), q)
	if err == nil {
		err = json.Unmarshal(raw, &reply)
	}
	if err != nil {
		return bus.ReportReply{}
	}
	return reply
}

// endedAttempts are attempts whose outcome is durable, by executor, until it is told.
type endedAttempts struct {
	mu sync.Mutex // guards by
	by map[string][]bus.Attempt
}

// acknowledge tells the executor of an intent later that its outcome is durable. If that is lost,
// the report is dropped when it is old.
func (r *Router) acknowledge(x *execution) {
	r.ended.mu.Lock()
	defer r.ended.mu.Unlock()
	if r.ended.by == nil {
		r.ended.by = map[string][]bus.Attempt{}
	}
	name := x.row.Executor
	if len(r.ended.by[name]) == 0 {
		time.AfterFunc(acknowledgeAfter, func() { r.tellRecorded(name) })
	}
	r.ended.by[name] = append(r.ended.by[name], bus.Attempt{IntentID: x.env.ID(), Number: x.attempt})
	if len(r.ended.by[name]) == maxAcknowledged {
		go r.tellRecorded(name)
	}
}

func (r *Router) tellRecorded(executor string) {
	r.ended.mu.Lock()
	q := bus.ReportRequest{Recorded: r.ended.by[executor]}
	delete(r.ended.by, executor)
	r.ended.mu.Unlock()
	if len(q.Recorded) == 0 {
		return // they were told
	}
	raw, err := json.Marshal(q)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		_, err = r.cfg.Bus.Request(ctx, bus.Reports(executor), raw)
	}
	if err != nil {
		r.cfg.Log.Debug("an executor was not told that outcomes are recorded: it drops their reports later", slog.String("executor", executor), slog.String("error", err.Error()))
	}
}
