package routertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Call is a dispatch whose ticket was verified.
type Call struct {
	Ticket intents.Ticket
	Body   intents.Body
	Raw    []byte // as it was sent
}

// Executor answers dispatches of one type.
type Executor func(ctx context.Context, c Call) intents.Report

// Bus is a connection on which executors listen in process. Each dispatch is accepted only if its
// ticket is signed by a router key in force and names the bytes sent with it.
type Bus struct {
	bus.Conn // nil: nothing but Request is there
	world    atomic.Pointer[World]

	mu        sync.Mutex // guards the fields below
	executors map[string]Executor
	calls     []Call
	broken    func(context.Context) ([]byte, error)
	kept      map[bus.Attempt]bus.ReportReply
	running   map[bus.Attempt]bool
	recorded  []bus.Attempt
	lost      string // a type
}

func newBus(w *World) *Bus {
	b := &Bus{executors: usual()}
	b.world.Store(w)
	return b
}

// On replaces the executor of a type; nil: nobody listens.
func (b *Bus) On(typ string, e Executor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.executors[typ] = e
}

// Executor of a type; nil: nobody listens.
func (b *Bus) Executor(typ string) Executor {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.executors[typ]
}

// Fail lets every request have the given end.
func (b *Bus) Fail(end func(context.Context) ([]byte, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = end
}

// Calls are the dispatches of a type so far.
func (b *Bus) Calls(typ string) []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Call
	for _, c := range b.calls {
		if c.Ticket.Type == typ {
			out = append(out, c)
		}
	}
	return out
}

// Forget forgets the dispatches so far.
func (b *Bus) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = nil
}

// Request implements bus.Conn.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if strings.HasPrefix(subject, bus.Reports("")) {
		return b.report(data)
	}
	typ := strings.TrimPrefix(subject, "writ.exec.")
	b.mu.Lock()
	run, broken := b.executors[typ], b.broken
	b.mu.Unlock()
	if broken != nil {
		return broken(ctx)
	}
	if run == nil {
		return nil, bus.ErrNoResponders
	}
	c, err := b.open(data)
	if err != nil {
		return json.Marshal(intents.Report{Status: intents.Failed, Code: intents.CodeOf(err), Reason: err.Error()})
	}
	b.mu.Lock()
	b.calls = append(b.calls, c)
	of := bus.Attempt{IntentID: c.Ticket.IntentID, Number: c.Ticket.Attempt}
	if b.running == nil {
		b.running = map[bus.Attempt]bool{}
	}
	b.running[of] = true
	b.mu.Unlock()
	report := run(ctx, c)
	b.mu.Lock()
	delete(b.running, of)
	lost := b.lost == typ
	b.mu.Unlock()
	if lost {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return json.Marshal(report)
}

// Lose the reports of a type on their way.
func (b *Bus) Lose(typ string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = typ
}

// Keep has the executors answer about an attempt at an intent; by default they know of those that run.
func (b *Bus) Keep(intentID string, attempt int, reply bus.ReportReply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[bus.Attempt]bus.ReportReply{}
	}
	b.kept[bus.Attempt{IntentID: intentID, Number: attempt}] = reply
}

// Recorded are the attempts of which executors were told that they are recorded.
func (b *Bus) Recorded() []bus.Attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.recorded)
}

func (b *Bus) report(data []byte) ([]byte, error) {
	var q bus.ReportRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recorded = append(b.recorded, q.Recorded...)
	if reply, ok := b.kept[q.Attempt]; ok {
		return json.Marshal(reply)
	}
	if b.running[q.Attempt] {
		return json.Marshal(bus.ReportReply{State: bus.ReportRunning})
	}
	return json.Marshal(bus.ReportReply{State: bus.ReportUnknown})
}

func (b *Bus) open(data []byte) (Call, error) {
	var d intents.Dispatch
	var c Call
	if err := json.Unmarshal(data, &d); err != nil {
		return c, err
	}
	w := b.world.Load()
	t, err := intents.OpenTicket(d.Ticket, w.Dir.View())
	if err != nil {
		return c, err
	}
	payload, err := intents.Canonical(d.Payload)
	switch {
	case err != nil:
		return c, err
	case t.Issuer != w.Origin || t.IntentID != intents.IntentID(d.Header, payload):
		return c, errors.New("the ticket is for another intent")
	case !t.BeginEnds().After(w.Clock.Now()):
		return c, errors.New("begin_by has passed")
	case !t.Deadline.After(w.Clock.Now()):
		return c, errors.New("the deadline has passed")
	}
	c.Ticket, c.Raw = t, data
	return c, json.Unmarshal(payload, &c.Body)
}

// Done reports a result.
func Done(result any, events ...intents.ReportedEvent) intents.Report {
	raw, err := json.Marshal(result)
	if err != nil {
		return intents.Report{Status: intents.Failed, Code: intents.ExecutorFailed, Reason: err.Error()}
	}
	return intents.Report{Status: intents.Done, Code: intents.OK, Result: raw, Events: events}
}

// Failed reports a failure with the code's own retryability.
func Failed(code intents.Code) intents.Report {
	return intents.Report{Status: intents.Failed, Code: code, Reason: "as the test wants it", Retryable: code.Info().Retryable}
}

// Event of a report.
func Event(event, payload string) intents.ReportedEvent {
	return intents.ReportedEvent{Event: event, Payload: json.RawMessage(payload)}
}

// Always answers every dispatch with one report.
func Always(r intents.Report) Executor {
	return func(context.Context, Call) intents.Report { return r }
}

// usual executors answer with a value of each type's result schema.
func usual() map[string]Executor {
	return map[string]Executor{
		"soul.get":    Always(Done(catalog.Soul{})),
		"skill.find":  Always(Done(catalog.SkillFindResult{Skills: []catalog.SkillHit{}})),
		"read_lines":  Always(Done(catalog.ReadLinesResult{Lines: []string{"a"}})),
		"exec_python": Always(Done(catalog.ExecPythonResult{Output: json.RawMessage(`[1,2]`)}, Event("python_script.executed", `{"exit_code":0}`))),
		"skill.call": Always(Done(catalog.SkillCallResult{Output: json.RawMessage(`[{"place":"x"}]`)},
			Event("skill.called", `{"skill_id":"feed","input_size_bytes":2,"response_size_bytes":15,"duration_ms":1}`))),
		"resource.read": Always(Done(catalog.SkillCallResult{Output: json.RawMessage(`"text"`)})),
		"skill.load": func(_ context.Context, c Call) intents.Report {
			p := c.Ticket.Pins[0]
			return Done(catalog.Manifest{
				Name: p.Skill, Description: "A skill.", InputSchema: json.RawMessage(`{}`), ExecutionMode: "sync",
				Endpoint: "e", Digest: p.Digest, Effect: catalog.Effect(p.Effect),
			})
		},
		"write_memory": func(_ context.Context, c Call) intents.Report {
			var a catalog.WriteMemory
			if err := json.Unmarshal(c.Body.Intent.Args, &a); err != nil {
				return Failed(intents.MalformedArgs)
			}
			key := MemoryKey(c.Ticket.Actor.Tenant, c.Body.Context.SessionID, c.Ticket.Scope.Task, a.Label)
			return Done(catalog.WriteMemoryResult{Key: key, SizeBytes: 3, Validated: true},
				Event("memory.written", `{"key":"`+key+`","size_bytes":3,"validated":true,"lock_wait_ms":0}`), Event("memory.upsert", `{"key":"`+key+`"}`))
		},
		"read_memory": func(_ context.Context, c Call) intents.Report {
			var a catalog.ReadMemory
			if err := json.Unmarshal(c.Body.Intent.Args, &a); err != nil {
				return Failed(intents.MalformedArgs)
			}
			return Done(catalog.ReadMemoryResult{Key: a.Key, Data: json.RawMessage(`[1,2]`)})
		},
	}
}

// MemoryKey is the key that the memory executor builds.
func MemoryKey(tenant, session, task, label string) string {
	return tenant + ":" + session + ":" + task + ":" + label
}

// NoBlobs is empty.
type NoBlobs struct{ storage.Blobs }

// Open finds nothing.
func (NoBlobs) Open(context.Context, storage.Scope, string) (io.ReadCloser, storage.File, error) {
	return nil, storage.File{}, storage.ErrNotFound
}

// Wipe has nothing to do.
func (NoBlobs) Wipe(context.Context, storage.Scope) error { return nil }

// Keep refuses.
func (NoBlobs) Keep(context.Context, string, io.Reader) (string, int64, error) {
	return "", 0, storage.ErrNotFound
}

// Fetch finds nothing.
func (NoBlobs) Fetch(context.Context, string, string) (io.ReadCloser, int64, error) {
	return nil, 0, storage.ErrNotFound
}
