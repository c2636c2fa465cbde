package logs

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// world is the executor over what a recorder would have written: records before next.
type world struct {
	*Logs
	t    *testing.T
	ex   *executortest.Executor
	docs *sqlite.Documents
	now  time.Time
	next int64
}

const (
	run    = "plan_1"
	client = "apikey:k1"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), func(index string, _ []byte, value any) (pointer, reason string, ok bool) {
		schema, err := schemas.Storage(index)
		if err != nil {
			return "", err.Error(), false
		}
		if v := schema.Validate(value); len(v) > 0 {
			return v[0].Pointer, v[0].Reason, false
		}
		return "", "", true
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docs.Close() })
	w := &world{t: t, docs: docs, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), next: 10}
	w.restart()
	w.put(catalog.PlanExecuting)
	return w
}

// restart is another process of the executor: streams and lines of open intents are gone.
func (w *world) restart() {
	w.Logs = New(Config{
		Documents: w.docs, Reached: func() int64 { return w.next }, Origin: executortest.Origin, Base: func() string { return "https://writ.example" },
		Instance: "i1", Now: func() time.Time { return w.now },
	})
	w.ex = executortest.New(w.t, Name, w.Now, w.Handlers())
	w.RouterKeys = w.ex.Keys()
}

// put is the plan of ana, whose second step is called build.
func (w *world) put(status catalog.PlanStatus) {
	w.t.Helper()
	p := catalog.PlanView{PlanID: run, TenantID: "acme", UserID: "ana", SessionID: "sess_1", Status: status, Task: "count", Epoch: 1, Revision: 1, MaxSteps: catalog.MaxSteps, CreatedAt: w.now, History: []catalog.Replan{}}
	for n, id := range []string{"", "build"} {
		p.Steps = append(p.Steps, catalog.StepView{PlanStep: catalog.PlanStep{Step: n + 1, ID: id, Task: "t", Skills: []string{}, ReturnSpec: catalog.ReturnSpec{Shape: "any", Reason: "r"}}, Status: catalog.StepRunning, Revision: 1})
	}
	body, err := json.Marshal(p)
	if err == nil {
		err = w.docs.Put(w.t.Context(), "acme", storage.IndexPlans, storage.Document{ID: run, Position: w.next, Body: body})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.next++
}

// record writes the lines of an intent's outcome.
func (w *world) record(of int64, attempt, step int, lines ...intents.Line) {
	w.t.Helper()
	node := map[int]string{2: "build"}[step]
	var docs []storage.Document
	for n, l := range lines {
		line := catalog.LogLine{Line: l, PlanID: run, NodeID: node, Step: step, Target: of, Attempt: attempt, N: n}
		if l.Source == intents.SourceWrit {
			line.N = catalog.LastLine
		}
		id := fmt.Sprintf("%012d-line-%03d", of, line.N)
		body, err := json.Marshal(map[string]any{"event_id": id, "tenant_id": "acme", "plan_id": run, "event_type": catalog.EventLine, "ts": w.now, "position": w.next, "payload": line})
		if err != nil {
			w.t.Fatal(err)
		}
		docs = append(docs, storage.Document{ID: id, Position: w.next, Body: body})
	}
	if _, err := w.docs.Create(w.t.Context(), "acme", storage.IndexEvents, docs...); err != nil {
		w.t.Fatal(err)
	}
	w.next++
}

func textLines(texts ...string) (out []intents.Line) {
	for _, text := range texts {
		l := intents.Line{At: time.Unix(0, 0).UTC(), Level: intents.LevelInfo, Source: "python:stderr", Text: text}
		if strings.HasPrefix(text, "error") {
			l.Level = intents.LevelError
		}
		out = append(out, l)
	}
	return out
}

// write publishes lines of an open intent as its executor does.
func (w *world) write(of int64, attempt, step, first int, lines []intents.Line, change ...func(*intents.Ticket, *executors.LogChunk, *string)) {
	w.t.Helper()
	t := intents.Ticket{
		Issuer: executortest.Origin, IntentID: intents.Digest(nil), Type: "exec_python", Executor: "python", Actor: intents.Principal{Tenant: "acme", UserID: "ana"},
		Position: of, Attempt: attempt, Deadline: w.now.Add(time.Minute), PolicyDigest: intents.Digest(nil),
		Scope: &intents.TaskScopeClaim{Plan: run, Step: step, Task: "task_1", Skills: []string{}},
	}
	x, by := executors.LogChunk{Position: of, Attempt: attempt, First: first, Lines: lines}, "python"
	for _, f := range change {
		f(&t, &x, &by)
	}
	var err error
	if first == 0 && x.Ticket == "" {
		if x.Ticket, err = intents.IssueTicket(w.ex.Router, t); err != nil {
			w.t.Fatal(err)
		}
	}
	raw, err := json.Marshal(x)
	if err != nil {
		w.t.Fatal(err)
	}
	w.written(by, raw)
}

// intent makes a stream and gives its id.
func (w *world) intent(args catalog.LogsStream) string {
	w.t.Helper()
	var made catalog.LogsStreamResult
	args.RunID = run
	w.ex.Must(w.t, executortest.Intent{Type: "logs.stream", Args: args, NoScope: true, NoPlan: true, Ticket: intents.Ticket{Client: client}}, &made)
	if !strings.HasPrefix(made.StreamURL, "wss://writ.example"+Route+"i1.") || made.ExpiresSec != 90 {
		w.t.Fatalf("%+v", made)
	}
	return path.Base(made.StreamURL)
}

func (w *world) query(q bus.LogsRequest) (reply bus.LogsReply) {
	w.t.Helper()
	raw, err := json.Marshal(q)
	if err == nil {
		err = json.Unmarshal(w.answer(w.t.Context(), raw), &reply)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return reply
}

func opening(id, after string) bus.LogsRequest {
	return bus.LogsRequest{ID: id, After: after, Tenant: "acme", UserID: "ana", Client: client}
}

// opened requests and opens a stream.
func (w *world) opened(args catalog.LogsStream, after string) (id string) {
	w.t.Helper()
	id = w.intent(args)
	if r := w.query(opening(id, after)); r.Code != "" || r.Since != w.now.Unix() {
		w.t.Fatalf("%+v", r)
	}
	return id
}

// texts that there are now, and the last cursor.
func (w *world) texts(id string) (out []string, cursor string, over bool) {
	w.t.Helper()
	for {
		r := w.query(bus.LogsRequest{ID: id, Now: true})
		if r.Code != "" {
			w.t.Fatalf("%+v", r)
		}
		for _, l := range r.Lines {
			var line catalog.LogLine
			if err := json.Unmarshal(l.Line, &line); err != nil {
				w.t.Fatal(err)
			}
			out, cursor = append(out, line.Text), l.Cursor
		}
		if len(r.Lines) == 0 || r.Ended {
			return out, cursor, r.Ended
		}
	}
}

func (w *world) want(id string, want ...string) {
	w.t.Helper()
	got, _, _ := w.texts(id)
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("(-want +got)\n%s", d)
	}
}

// Another's run does not exist, but for who oversees the tenant.
func TestRunReadRights(t *testing.T) {
	w := newWorld(t)
	ask := func(tenant, user, id string, oversees bool) intents.Code {
		r := w.ex.Do(t, executortest.Intent{
			Type: "logs.stream", Args: catalog.LogsStream{RunID: id}, NoScope: true, NoPlan: true,
			Ticket: intents.Ticket{Actor: intents.Principal{Tenant: tenant, UserID: user}, Oversees: oversees},
		})
		return r.Code
	}
	for name, c := range map[string]struct {
		got, want intents.Code
	}{
		"own":                    {ask("acme", "ana", run, false), intents.OK},
		"of another user":        {ask("acme", "ben", run, false), intents.NotFound},
		"of another, overseeing": {ask("acme", "ben", run, true), intents.OK},
		"of another tenant":      {ask("other", "ana", run, true), intents.NotFound},
		"none":                   {ask("acme", "ana", "plan_2", true), intents.NotFound},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
}

// An address is opened once, by the user who asked for it, within 90 seconds.
func TestOpenedOnce(t *testing.T) {
	w := newWorld(t)
	id := w.intent(catalog.LogsStream{})
	refused := func(what string, q bus.LogsRequest) {
		t.Helper()
		if r := w.query(q); r.Code != string(intents.NotFound) {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for what, change := range map[string]func(*bus.LogsRequest){
		"another key":    func(q *bus.LogsRequest) { q.Client = "apikey:k2" },
		"no key":         func(q *bus.LogsRequest) { q.Client = "" },
		"another user":   func(q *bus.LogsRequest) { q.UserID = "ben" },
		"another tenant": func(q *bus.LogsRequest) { q.Tenant = "other" },
		"another id":     func(q *bus.LogsRequest) { q.ID = id[:len(id)-1] + "_" },
	} {
		q := opening(id, "")
		change(&q)
		refused(what, q)
	}
	refused("lines before it is open", bus.LogsRequest{ID: id})
	w.now = w.now.Add(Life - time.Second)
	if r := w.query(opening(id, "")); r.Code != "" {
		t.Fatalf("after others have tried: %+v", r)
	}
	refused("a second time", opening(id, ""))
	w.want(id)
	late := w.intent(catalog.LogsStream{})
	w.now = w.now.Add(Life)
	refused("after 90 seconds", opening(late, ""))
	if r := w.query(opening(w.intent(catalog.LogsStream{}), "no cursor")); r.Code != string(intents.SchemaInvalid) {
		t.Errorf("a bad cursor: %+v", r)
	}
}

// TestStreamShares: whoever requests streams without end loses their own oldest ones, and none that
// is read; nobody else loses one.
func TestStreamShares(t *testing.T) {
	w := newWorld(t)
	theirs := w.intent(catalog.LogsStream{})
	flood := func(n int) (ids []string) {
		for range n {
			var made catalog.LogsStreamResult
			w.ex.Must(t, executortest.Intent{
				Type: "logs.stream", Args: catalog.LogsStream{RunID: run}, NoScope: true, NoPlan: true,
				Ticket: intents.Ticket{Client: client, Oversees: true, Actor: intents.Principal{Tenant: "acme", UserID: "ben"}},
			}, &made)
			ids = append(ids, path.Base(made.StreamURL))
		}
		return ids
	}
	of := func(id string) bus.LogsRequest {
		q := opening(id, "")
		q.UserID = "ben"
		return q
	}
	first := flood(2)
	if r := w.query(of(first[1])); r.Code != "" {
		t.Fatalf("%+v", r)
	}
	last := flood(shares.Key - 1)
	for what, c := range map[string]struct {
		q    bus.LogsRequest
		want intents.Code
	}{
		"the oldest":       {of(first[0]), intents.NotFound},
		"one that is read": {bus.LogsRequest{ID: first[1], Now: true}, ""},
		"the newest":       {of(last[len(last)-1]), ""},
		"another user's":   {opening(theirs, ""), ""},
	} {
		if r := w.query(c.q); r.Code != string(c.want) {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// A long log comes in several answers, and a follower goes on amid an outcome.
func TestLongLog(t *testing.T) {
	w := newWorld(t)
	var want, got []string
	for of := range int64(4) {
		var texts []string
		for n := range intents.MaxLines - 50 {
			texts = append(texts, fmt.Sprintf("%d/%d", of, n))
		}
		want = append(want, texts...)
		w.record(of, 1, 1, textLines(texts...)...)
	}
	cursor, answers := "", 0
	for {
		r := w.query(bus.LogsRequest{ID: w.opened(catalog.LogsStream{}, cursor), Now: true})
		if len(r.Lines) == 0 {
			break
		}
		answers++
		for _, l := range r.Lines[:len(r.Lines)/2+1] { // the rest was lost on the way
			var line catalog.LogLine
			if err := json.Unmarshal(l.Line, &line); err != nil {
				t.Fatal(err)
			}
			got, cursor = append(got, line.Text), l.Cursor
		}
	}
	if d := cmp.Diff(want, got); d != "" || answers < 6 {
		t.Errorf("%d answers (-want +got)\n%s", answers, d)
	}
}

// Filters hold for lines of the record and of open intents, and the end of the run ends the log.
func TestFilters(t *testing.T) {
	w := newWorld(t)
	w.record(3, 1, 1, textLines("one", "error two")...)
	w.record(4, 1, 2, append(textLines("three"), intents.Line{Level: intents.LevelError, Source: intents.SourceWrit, Text: "error failed"})...)
	w.write(8, 1, 2, 0, textLines("four", "error five"))
	w.write(9, 1, 1, 0, textLines("six"))
	w.want(w.opened(catalog.LogsStream{Filter: catalog.LogsAll}, ""), "one", "error two", "three", "error failed", "four", "error five", "six")
	w.want(w.opened(catalog.LogsStream{Filter: catalog.LogsErrors}, ""), "error two", "error failed", "error five")
	w.want(w.opened(catalog.LogsStream{NodeID: "build"}, ""), "three", "error failed", "four", "error five")
	w.want(w.opened(catalog.LogsStream{Filter: catalog.LogsErrors, NodeID: "build"}, ""), "error failed", "error five")
	id := w.opened(catalog.LogsStream{}, "")
	w.put(catalog.PlanComplete)
	if _, _, over := w.texts(id); !over {
		t.Error("the run has ended, and its log has not")
	}
	if r := w.query(bus.LogsRequest{ID: id}); r.Code != string(intents.NotFound) {
		t.Errorf("after the end: %+v", r)
	}
}
