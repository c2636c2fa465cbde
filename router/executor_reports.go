package router

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
)

const (
	// watchAfter is when a router begins to ask about an intent that it has dispatched, by then begun
	// or refused; watchEvery how often; and directTime how long it waits for the reply itself, which
	// the bus would drop later.
	watchAfter = 3 * time.Second
	watchEvery = time.Second
	directTime = 10 * time.Minute
	// watchUnknown is how many replies in a row must know nothing of an intent that was begun.
	watchUnknown = 10
	// askTime bounds one question to an executor what became of an intent.
	askTime = time.Second
	// acknowledgeAfter an outcome is durable, its executor may drop the report. Those of that time
	// share one message.
	acknowledgeAfter = time.Second
	// acknowledged at most in one message.
	maxAcknowledged = 4096
)

// errLost means that the process that carried an intent out has ended, or no longer answers.
var errLost = intents.Refuse(intents.ExecutorTimeout, "", "the executor does not know the intent any more: its process has ended")

// reportOf has an executor carry an intent out and returns its report. Once the intent runs, it asks
// about it again and again, and displays its progress.
func (r *Router) reportOf(ctx context.Context, x *execution, dispatch []byte) ([]byte, error) {
	type reply struct {
		raw []byte
		err error
	}
	replies := make(chan reply, 2)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		direct, cancel := context.WithTimeout(ctx, directTime)
		defer cancel()
		raw, err := r.cfg.Bus.Request(direct, bus.Exec(x.env.Type()), dispatch)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil { // else the others have it
			replies <- reply{raw, err}
		}
	}()
	silence := x.row.Start()
	if x.row.Vendor() { // it may not answer such questions
		silence = x.row.Run()
	}
	watch := time.AfterFunc(watchAfter, func() {
		raw, known := r.keptReport(ctx, x, silence, watchUnknown)
		switch {
		case known:
			replies <- reply{raw, nil}
		case ctx.Err() == nil:
			replies <- reply{nil, errLost}
		}
	})
	defer watch.Stop()
	select {
	case a := <-replies:
		return a.raw, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// keptReport asks the executor of an intent what became of its current attempt, and waits for the
// report as long as it runs. known is false if so many replies in a row know nothing of it, or if
// none comes for a time. Only the processes of the executor know of an attempt: one that has
// ended since forgets it.
func (r *Router) keptReport(ctx context.Context, x *execution, silence time.Duration, unknowns int) (report []byte, known bool) {
	heard, last := time.Now(), (*bus.Progress)(nil)
	for unknown := 0; ; {
		reply, pause := r.askExecutor(ctx, x), listenerPause
		if unknown++; reply.State != bus.ReportUnknown || !r.settled() {
			unknown = 0 // its ticket may still be begun
		}
		switch {
		case reply.State == bus.ReportDone:
			return reply.Report, true
		case unknown == unknowns, ctx.Err() != nil:
			return nil, false
		case reply.State == bus.ReportRunning:
			heard, pause = time.Now(), watchEvery
			if p := reply.Progress; p != nil && (last == nil || *p != *last) {
				r.showProgress(x, *p)
				last = p
			}
		case reply.State == "" && r.settled() && time.Since(heard) >= silence:
			return nil, false
		}
		if clock.Sleep(ctx, pause) != nil {
			return nil, false
		}
	}
}

// showProgress displays how far a call of a turn is, to whoever follows the turn.
func (r *Router) showProgress(x *execution, p bus.Progress) {
	at := x.env.Context()
	if at.TurnID == "" {
		return
	}
	frame, err := bus.NewFrame(bus.FrameStatus, bus.StatusData{
		State: "running", Message: p.Message, Progress: p.Progress, Total: p.Total, Step: at.Step, TaskID: at.TaskID, PlanID: at.PlanID, IntentID: x.env.ID(),
	})
	if err == nil {
		err = r.cfg.Bus.Publish(bus.Turn(x.env.Principal().Tenant, at.TurnID), frame)
	}
	if err != nil {
		r.cfg.Log.Warn("progress is not shown", slog.String("intent_id", x.env.ID()), slog.String("error", err.Error()))
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
	q, err := json.Marshal(bus.ReportRequest{
		Attempt: bus.Attempt{IntentID: x.env.ID(), Number: x.attempt},
		Cancel:  r.state.PlanCancelled(x.env.Principal().Tenant, x.env.Context().PlanID),
	})
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
