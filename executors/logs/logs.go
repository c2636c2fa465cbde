// Package logs follows the logs of runs. A log is the lines that scripts and skill servers
// wrote while the intents of a run were carried out. The record has them, part of each intent's
// outcome, and so the events of type log.line; while an intent is open its executor publishes
// them, too.
//
// logs.stream makes the address of a stream, which can be opened once within Life by the user who
// requested it: through the same client or, if an operator's key signed the intent, through any
// client of that user. The gateway opens it and reads its lines as long as its client follows.
// Streams are in the memory of this process: after a restart a follower requests a new one with the
// cursor of the last line that it has.
package logs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "logs"

// Route is the gateway's path of streams; the id follows.
const Route = "/v1/logs/"

// Life is how long the address of a stream can be opened.
const Life = 90 * time.Second

// Bounds of what is in memory.
const (
	maxStreams = 10_000
	idle       = time.Minute // a stream that nobody reads ends
)

// shares are of the streams: of all, of a tenant's, and of those of its user.
var shares = ratelimit.Shares{All: maxStreams, Tenant: maxStreams / 4, Key: 50}

// Config of the executor. All members but Log are required.
type Config struct {
	Documents  storage.Documents
	Reached    func() int64 // position before which all records are in Documents
	RouterKeys intents.Keys // keys that may sign tickets
	Origin     string
	Base       func() string // URL of the gateway: http://host:port
	Instance   string        // of this process, on the bus
	Now        func() time.Time
	Log        *slog.Logger
}

// Logs carries out logs.stream, and has the streams.
type Logs struct {
	Config
	live live

	mu       sync.Mutex // guards streams
	streams  *ratelimit.Table[*stream]
	stopping chan struct{}
}

// New makes an executor without streams.
func New(cfg Config) *Logs {
	return &Logs{Config: cfg, live: live{intents: ratelimit.NewTable[*writing](writingShares, nil)}, streams: ratelimit.NewTable[*stream](shares, nil), stopping: make(chan struct{})}
}

// Handlers of the executor.
func (l *Logs) Handlers() map[string]executors.Handler {
	return map[string]executors.Handler{"logs.stream": executors.WithArgs(l.stream)}
}

// Serve takes the lines of other executors and the gateway's questions, until ctx ends.
func (l *Logs) Serve(ctx context.Context, c bus.Conn, ready chan<- struct{}) error {
	stop := context.AfterFunc(ctx, func() { close(l.stopping) })
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listening, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- bus.Listen(ctx, c, bus.Log("*"), listening, func(subject string, data []byte) { l.written(subject[len(bus.Log("")):], data) })
	}()
	select {
	case <-listening:
	case err := <-ended:
		return err
	}
	err := c.Serve(ctx, bus.Service{
		Name: bus.ServiceName(bus.LogStreams), Version: "1.0.0", Description: "lines of logs, for the gateway", Queue: Name, Workers: maxStreams,
		Endpoints: map[string]bus.Handler{bus.Logs(l.Instance): l.answer},
	}, ready)
	cancel()
	return errors.Join(err, <-ended)
}

// stream makes a stream of a run that the actor may see.
func (l *Logs) stream(ctx context.Context, o *executors.Intent, args catalog.LogsStream) (*executors.Result, error) {
	actor := o.Ticket.Actor
	plan, err := l.plan(ctx, actor.Tenant, args.RunID)
	if err != nil {
		return nil, executors.Store(err)
	}
	if plan.UserID != actor.UserID && !o.Ticket.Oversees {
		return nil, executors.Store(storage.ErrNotFound)
	}
	s := &stream{
		tenant: actor.Tenant, user: actor.UserID, client: o.Ticket.Client, plan: args.RunID, filter: args.Filter, node: args.NodeID,
		requested: l.Now(), until: l.Now().Add(Life), liveMarks: map[int64]mark{}, done: map[int64]bool{},
	}
	id := l.Instance + "." + rand.Text()
	l.mu.Lock()
	l.streams.Put(id, s.tenant, s.user, 1, s)
	l.mu.Unlock()
	base, err := url.Parse(l.Base())
	if err != nil {
		return nil, fmt.Errorf("address of the gateway: %w", err)
	}
	scheme := "ws"
	if base.Scheme == "https" {
		scheme = "wss"
	}
	return &executors.Result{Value: catalog.LogsStreamResult{StreamURL: scheme + "://" + base.Host + base.Path + Route + id, ExpiresSec: int(Life / time.Second)}}, nil
}

// plan reads a run.
func (l *Logs) plan(ctx context.Context, tenant, id string) (catalog.PlanView, error) {
	var view catalog.PlanView
	doc, err := l.Documents.Get(ctx, tenant, storage.IndexPlans, id)
	if err == nil {
		err = json.Unmarshal(doc.Body, &view)
	}
	return view, err
}

// Why a question has no answer.
func refusal(err error) bus.LogsReply {
	reply := bus.LogsReply{Code: string(intents.ExecutorFailed), Reason: "the log cannot be read now"}
	if r, ok := errors.AsType[*intents.Refusal](err); ok {
		reply.Code, reply.Reason = string(r.Code), r.Reason
	}
	return reply
}

// answer is the reply to a LogsRequest.
func (l *Logs) answer(ctx context.Context, data []byte) []byte {
	var q bus.LogsRequest
	err := json.Unmarshal(data, &q)
	var reply bus.LogsReply
	switch {
	case err != nil:
		err = intents.Refuse(intents.SchemaInvalid, "", "not a question for lines")
	case q.UserID != "":
		reply, err = l.open(q)
	default:
		reply, err = l.next(ctx, q)
	}
	if err != nil {
		if l.Log != nil && intents.CodeOf(err) == intents.Internal {
			l.Log.WarnContext(ctx, "a log cannot be read", slog.String("error", err.Error()))
		}
		reply = refusal(err)
	}
	raw, _ := json.Marshal(reply) // plain data
	return raw
}

func noStream() error {
	return intents.Refuse(intents.NotFound, "", "no such stream for this caller: it has been opened, its 90 seconds are over, newer ones of the same user have displaced it, or it is somebody else's")
}

// open opens a stream, once, for the user who requested it.
func (l *Logs) open(q bus.LogsRequest) (bus.LogsReply, error) {
	after, err := parseCursor(q.After)
	if err != nil {
		return bus.LogsReply{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.streams.Peek(q.ID)
	if !ok || s.opened || !l.Now().Before(s.until) || q.Tenant != s.tenant || q.UserID != s.user || s.client != "" && q.Client != s.client {
		return bus.LogsReply{}, noStream()
	}
	l.streams.Get(q.ID)
	s.opened, s.until = true, l.Now().Add(idle)
	s.floor = after
	for of, m := range after.Live {
		s.liveMarks[of] = m
	}
	return bus.LogsReply{Since: s.requested.Unix()}, nil
}

// How long a question waits for lines, and how often it looks.
const (
	waitTime = 3 * time.Second
	lookTime = 100 * time.Millisecond
)

// next gives the next lines of an open stream; none after waitTime.
func (l *Logs) next(ctx context.Context, q bus.LogsRequest) (bus.LogsReply, error) {
	l.mu.Lock()
	s, ok := l.streams.Get(q.ID)
	if !ok || !s.opened || !l.Now().Before(s.until) {
		l.mu.Unlock()
		return bus.LogsReply{}, noStream()
	}
	s.until = l.Now().Add(idle)
	l.mu.Unlock()
	s.reading.Lock()
	defer s.reading.Unlock()
	wait, look := time.NewTimer(waitTime), time.NewTicker(lookTime)
	defer wait.Stop()
	defer look.Stop()
	for {
		reply, err := l.read(ctx, s)
		if reply.Ended {
			l.forget(q.ID)
		}
		if err != nil || len(reply.Lines) > 0 || reply.Ended || q.Now {
			return reply, err
		}
		for changed := false; !changed; changed = l.changed(s) {
			select {
			case <-wait.C:
				return bus.LogsReply{}, nil
			case <-l.stopping:
				return bus.LogsReply{}, nil
			case <-look.C:
			}
		}
	}
}

func (l *Logs) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams.Remove(id)
}
