package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/memory"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/sqlite"
)

// bench is the executor on real stores, with a clock that only waiting moves.
type bench struct {
	*executortest.Executor
	docs  storage.Documents
	blobs storage.Blobs

	mu     sync.Mutex // guards now and onWait
	now    time.Time
	onWait func(waited time.Duration) // called before each step of the clock
}

func open(t *testing.T) *bench {
	t.Helper()
	return on(t, embedded(t), nil)
}

// dimension of vectors in tests: few features of a text share a number.
const dimension = 512

// embedded is the store of one process.
func embedded(t *testing.T) *sqlite.Documents {
	t.Helper()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), storage.NewCheck(dimension), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	return docs
}

// on is the executor on a store, with an embedder or none.
func on(t *testing.T, docs storage.Documents, e embed.Embedder) *bench {
	t.Helper()
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{docs: docs, blobs: blobs, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	b.Executor = executortest.New(t, memory.Name, b.clock, memory.Handlers(memory.Config{
		Documents: docs, Embedder: e, Blobs: blobs, Now: b.clock, Wait: b.wait,
		Builtins: []json.RawMessage{json.RawMessage(`{"name":"dreamer","kind":"agent","content":"You dream.","json_schema":{"temperature":0.7}}`)},
	}))
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) wait(ctx context.Context, d time.Duration) error {
	b.mu.Lock()
	b.now = b.now.Add(d)
	on := b.onWait
	b.mu.Unlock()
	if on != nil {
		on(d)
	}
	return ctx.Err()
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// task is the scope of a task whose step returns rows.
func task(id string, step int) *intents.TaskScopeClaim {
	return &intents.TaskScopeClaim{Task: id, Step: step, ReturnSpec: spec("array<{id: string, score: number}>")}
}

func spec(shape string) json.RawMessage {
	raw, _ := json.Marshal(catalog.ReturnSpec{Shape: shape, Reason: "test"})
	return raw
}

const rows = `[{"id":"a","score":1.5},{"id":"b","score":2}]`

func write(scope *intents.TaskScopeClaim, label, data string) executortest.Intent {
	in := executortest.Intent{Type: "write_memory", Args: catalog.WriteMemory{Label: label, Data: json.RawMessage(data)}}
	in.Ticket.Scope = scope
	return in
}

func scoped(in executortest.Intent, scope string) executortest.Intent {
	if args, ok := in.Args.(catalog.WriteMemory); ok {
		args.Scope = scope
		in.Args = args
	}
	return in
}

// read is the manager's.
func read(key string, confirm bool) executortest.Intent {
	return executortest.Intent{Type: "read_memory", NoScope: true, Args: catalog.ReadMemory{Key: key, Confirm: confirm}}
}

func taskRead(scope *intents.TaskScopeClaim, key string) executortest.Intent {
	in := executortest.Intent{Type: "read_memory", Args: catalog.ReadMemory{Key: key}}
	in.Ticket.Scope = scope
	return in
}

func TestWriteThenConfirm(t *testing.T) {
	b := open(t)
	var wrote catalog.WriteMemoryResult
	noted := write(task("task_1", 1), "strongest", rows)
	noted.Args = catalog.WriteMemory{Label: "strongest", Data: json.RawMessage(rows), Notes: "Two are doubtful."}
	r := b.Must(t, noted, &wrote)
	want := catalog.WriteMemoryResult{Key: "acme:sess_1:task_1:strongest", SizeBytes: int64(len(rows)), Validated: true}
	if wrote != want {
		t.Errorf("%+v, want %+v", wrote, want)
	}
	event := executortest.EventPayload(t, r, "memory.written")
	if diff := cmp.Diff(map[string]any{"key": want.Key, "size_bytes": float64(len(rows)), "validated": true, "lock_wait_ms": 0.0}, event); diff != "" {
		t.Error(diff)
	}
	if executortest.EventPayload(t, r, "memory.upsert")["key"] != want.Key {
		t.Errorf("facts: %+v", r.Events)
	}
	var got catalog.ReadMemoryResult
	b.Must(t, read(want.Key, true), &got)
	if string(got.Data) != rows || got.Notes != "Two are doubtful." || got.Reference != nil {
		t.Errorf("read %s", got.Data)
	}
	// Confirmed: another task of another step takes the lock at once.
	r = b.Must(t, write(task("task_2", 2), "strongest", rows), nil)
	if waited := executortest.EventPayload(t, r, "memory.written")["lock_wait_ms"]; waited != 0.0 {
		t.Errorf("waited %v ms for a lock that was given back", waited)
	}
}

// TestContract: data that breaks return_spec is not written, and the answer
// shows shapes, never values.
func TestContract(t *testing.T) {
	tests := []struct{ shape, data, actual string }{
		{"array<string>", `["a",7]`, "array<string|integer>"},
		{"array<{id: string, score: number}>", `[{"id":"secret"}]`, "array<{id: string}>"},
		{"array<{id, score}>", `{"secret":[]}`, "{secret: array}"},
		{"{count: integer}", `{"count":1.5,"a secret name":true}`, "{count: number, …}"},
		{"{count: integer}", `null`, "null"},
		{`{"type":"object","required":["n"]}`, `{}`, "{}"},
	}
	for _, tt := range tests {
		b := open(t)
		scope := task("task_1", 3)
		scope.ReturnSpec = spec(tt.shape)
		r := b.Do(t, write(scope, "x", tt.data))
		if r.Code != intents.ContractViolation || r.Status != intents.Failed || r.Retryable {
			t.Fatalf("%s: %+v", tt.data, r)
		}
		var details map[string]string
		if err := json.Unmarshal(r.Result, &details); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"status": "contract_violation", "expected": tt.shape, "actual": tt.actual}, details); diff != "" {
			t.Error(diff)
		}
		event := executortest.EventPayload(t, r, "contract_violation")
		if diff := cmp.Diff(map[string]any{"expected_shape": tt.shape, "actual_shape": tt.actual, "step_index": 3.0}, event); diff != "" {
			t.Error(diff)
		}
		if r := b.Do(t, read("acme:sess_1:task_1:x", false)); r.Code != intents.NotFound {
			t.Errorf("it was written: %+v", r)
		}
	}
}

// TestContractIsBounded: a shape and data that would find two hundred million
// members missing are refused, in one sentence.
func TestContractIsBounded(t *testing.T) {
	names := make([]string, 620)
	for i := range names {
		names[i] = fmt.Sprintf(`"%x"`, i)
	}
	scope := task("task_1", 3)
	scope.ReturnSpec = spec(`{"$defs":{"r":{"required":[` + strings.Join(names, ",") + `]}},"items":{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/r"},`, 24) + `{"$ref":"#/$defs/r"}]}}`)
	r := open(t).Do(t, write(scope, "x", `[`+strings.Repeat("{},", 14_000)+`{}]`))
	if r.Code != intents.ContractViolation || !strings.Contains(r.Reason, "at the top: takes too much work to check") {
		t.Errorf("%s: %s", r.Code, r.Reason)
	}
}

func TestWriteRefuses(t *testing.T) {
	b := open(t)
	outside := write(nil, "x", rows)
	outside.NoScope = true
	broken := task("task_1", 1)
	broken.ReturnSpec = spec("array<")
	none := task("task_1", 1)
	none.ReturnSpec = json.RawMessage(`{}`)
	for name, in := range map[string]executortest.Intent{
		"outside a task":     outside,
		"broken return_spec": write(broken, "x", rows),
		"no return_spec":     write(none, "x", rows),
	} {
		if r := b.Do(t, in); r.Code != intents.MalformedArgs {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Data may come from a file of the step; one that is no JSON breaks the contract.
func TestWriteFromFile(t *testing.T) {
	b := open(t)
	from := func(content string) executortest.Intent {
		scope := storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 1}
		file, err := b.blobs.Put(t.Context(), scope, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		in := executortest.Intent{Type: "write_memory", Args: catalog.WriteMemory{Label: "x", From: file.ID}}
		in.Ticket.Scope = task("task_1", 1)
		in.Ticket.Inputs = []intents.Input{{Pointer: "/data", Ref: file.ID, SHA256: file.SHA256, Size: file.Size}}
		return in
	}
	b.Must(t, from(" "+strings.ReplaceAll(rows, ",{", ",\n  {")), nil)
	var got catalog.ReadMemoryResult
	b.Must(t, read("acme:sess_1:task_1:x", false), &got)
	if string(got.Data) != rows {
		t.Errorf("stored %s", got.Data)
	}
	if r := b.Do(t, from("id,score\na,1\n")); r.Code != intents.ContractViolation || !strings.Contains(string(r.Result), `"actual":"text"`) {
		t.Errorf("CSV: %+v %s", r, r.Result)
	}
	if r := b.Do(t, from(`["`+strings.Repeat("a", memory.MaxSize)+`"]`)); r.Code != intents.OversizedOutput {
		t.Errorf("too large: %+v", r)
	}
}

// TestFencing: a document takes only higher positions; the same one is the same
// write, and one that comes late is STALE.
func TestFencing(t *testing.T) {
	b := open(t)
	at := func(position int64, data string) executortest.Intent {
		in := write(task("task_1", 1), "x", data)
		in.Position = position
		return in
	}
	b.Must(t, at(50, `[{"id":"new","score":1}]`), nil)
	b.Must(t, at(50, `[{"id":"new","score":1}]`), nil)
	if r := b.Do(t, at(49, `[{"id":"late","score":1}]`)); r.Code != intents.StaleWrite || r.Retryable {
		t.Errorf("late: %+v", r)
	}
	var got catalog.ReadMemoryResult
	b.Must(t, read("acme:sess_1:task_1:x", false), &got)
	if !strings.Contains(string(got.Data), "new") {
		t.Errorf("read %s", got.Data)
	}
}

// TestReadScope: who may read what.
func TestReadScope(t *testing.T) {
	b := open(t)
	for _, scope := range []string{"session", "user", "tenant"} {
		b.Must(t, scoped(write(task("task_1", 1), scope, rows), scope), nil)
	}
	key := func(label string) string { return "acme:sess_1:task_1:" + label }
	input := task("task_2", 2)
	input.InputKey = key("session")

	b.Must(t, taskRead(task("task_1", 1), key("session")), nil)
	b.Must(t, taskRead(input, key("session")), nil)
	if r := b.Do(t, taskRead(input, key("user"))); r.Code != intents.TaskScope {
		t.Errorf("task reads another key: %+v", r)
	}
	confirm := taskRead(input, key("session"))
	confirm.Args = catalog.ReadMemory{Key: key("session"), Confirm: true}
	if r := b.Do(t, confirm); r.Code != intents.MalformedArgs {
		t.Errorf("task confirms: %+v", r)
	}
	other := func(label, session, user, tenant string) intents.Code {
		in := read(key(label), false)
		in.Context.SessionID, in.Ticket.Actor.UserID, in.Ticket.Actor.Tenant = session, user, tenant
		return b.Do(t, in).Code
	}
	for _, tt := range []struct {
		label, session, user, tenant string
		want                         intents.Code
	}{
		{"session", "sess_1", "ana", "acme", intents.OK},
		{"session", "sess_2", "ana", "acme", intents.NotFound},
		{"session", "sess_1", "bob", "acme", intents.NotFound},
		{"user", "sess_2", "ana", "acme", intents.OK},
		{"user", "sess_2", "bob", "acme", intents.NotFound},
		{"tenant", "sess_2", "bob", "acme", intents.OK},
		{"tenant", "sess_2", "bob", "evil", intents.NotFound},
	} {
		if got := other(tt.label, tt.session, tt.user, tt.tenant); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// Large memories reach agents as references: a task's is a file of its step.
func TestReadLarge(t *testing.T) {
	b := open(t)
	large := `["` + strings.Repeat("x", 60_000) + `"]`
	scope := task("task_1", 1)
	scope.ReturnSpec = spec("array<string>")
	in := executortest.Intent{Type: "write_memory", Args: catalog.WriteMemory{Label: "x", From: "f"}}
	in.Ticket.Scope = scope
	in.Ticket.Inputs = []intents.Input{{Pointer: "/data", Value: json.RawMessage(large)}}
	b.Must(t, in, nil)
	for name, intent := range map[string]executortest.Intent{
		"task": taskRead(task("task_1", 1), "acme:sess_1:task_1:x"), "manager": read("acme:sess_1:task_1:x", false),
	} {
		var got catalog.ReadMemoryResult
		r := b.Must(t, intent, &got)
		if got.Data != nil || got.Reference == nil || got.SizeBytes < 60_000 || len(r.Result) >= storage.InlineLimit {
			t.Errorf("%s: %.100s", name, r.Result)
		}
		if name != "task" {
			continue
		}
		file, _, err := b.blobs.Open(t.Context(), storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 1}, got.FileID)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	person := read("acme:sess_1:task_1:x", false)
	person.NoPlan = true
	if r := b.Do(t, person); r.Code != intents.OversizedOutput {
		t.Errorf("outside a plan, where files have no place: %+v", r)
	}
}

// A person who looks a memory up confirms nothing for the manager.
func TestOnlyAManagerConfirms(t *testing.T) {
	b := open(t)
	b.Must(t, write(task("task_1", 1), "x", rows), nil)
	for confirm, want := range map[bool]intents.Code{true: intents.MalformedArgs, false: intents.OK} {
		in := read("acme:sess_1:task_1:x", confirm)
		in.NoPlan = true
		if r := b.Do(t, in); r.Code != want {
			t.Errorf("confirm %v: %+v", confirm, r)
		}
	}
}

// TestExpired: a memory past its time is not served, to nobody and in no way.
func TestExpired(t *testing.T) {
	b := open(t)
	b.Must(t, write(task("task_1", 1), "x", rows), nil)
	b.Must(t, scoped(write(task("task_1", 1), "y", rows), "user"), nil)
	b.advance(memory.SessionTTL)
	if r := b.Do(t, read("acme:sess_1:task_1:x", false)); r.Code != intents.NotFound {
		t.Errorf("read: %+v", r)
	}
	b.Must(t, read("acme:sess_1:task_1:y", false), nil)
	if hits := b.query(t, "score", "", 0); len(hits) != 1 || hits[0].Scope != "user" {
		t.Errorf("query: %+v", hits)
	}
	b.advance(memory.UserTTL)
	if hits := b.query(t, "score", "", 0); len(hits) != 0 {
		t.Errorf("query: %+v", hits)
	}
}

func (b *bench) query(t *testing.T, text, scope string, topK int) []catalog.MemoryHit {
	t.Helper()
	in := executortest.Intent{Type: "memory.query", NoScope: true, Args: catalog.MemoryQuery{Text: text, Scope: scope, TopK: topK}}
	var got catalog.MemoryQueryResult
	b.Must(t, in, &got)
	return got.Hits
}

// TestQuery: the filters are tenant, user and scope, and they are part of the
// search: others' memories never appear, nor take a place.
func TestQuery(t *testing.T) {
	b := open(t)
	put := func(tenant, user, session, scope, label, text string) {
		in := scoped(write(task("task_1", 1), label, `["`+text+`"]`), scope)
		in.Ticket.Scope.ReturnSpec = spec("array<string>")
		in.Ticket.Actor.Tenant, in.Ticket.Actor.UserID, in.Context.SessionID = tenant, user, session
		b.Must(t, in, nil)
	}
	put("acme", "ana", "sess_1", "session", "a", "harbour opening hours")
	put("acme", "ana", "sess_2", "session", "b", "harbour in another session")
	put("acme", "ana", "sess_2", "user", "c", "the harbour that ana likes")
	put("acme", "bob", "sess_3", "user", "d", "the harbour that bob likes harbour harbour")
	put("acme", "bob", "sess_3", "tenant", "e", "our harbour")
	put("evil", "ana", "sess_1", "tenant", "f", "harbour of another tenant")
	labels := func(hits []catalog.MemoryHit) string {
		var out []string
		for _, h := range hits {
			out = append(out, h.Key[strings.LastIndexByte(h.Key, ':')+1:])
			if h.Source == "" || h.CreatedAt.IsZero() {
				t.Errorf("%+v", h)
			}
		}
		return strings.Join(out, "")
	}
	for _, tt := range []struct {
		scope string
		topK  int
		want  string
	}{{"", 0, "ace"}, {"", 2, "ac"}, {"session", 0, "a"}, {"user", 0, "c"}, {"tenant", 0, "e"}} {
		if got := labels(b.query(t, "harbour", tt.scope, tt.topK)); got != tt.want {
			t.Errorf("%q top %d: %s, want %s", tt.scope, tt.topK, got, tt.want)
		}
	}
	if hits := b.query(t, "unheard", "", 0); len(hits) != 0 {
		t.Errorf("%+v", hits)
	}
	if hits := b.query(t, `" OR * AND NEAR( tenant_id:evil`, "", 0); len(hits) != 0 {
		t.Errorf("a query is words only: %+v", hits)
	}
}

// A task finds what it may read, and nothing else: its step's input and its own
// memories, though the user, the session and the tenant have more.
func TestQueryOfTask(t *testing.T) {
	b := open(t)
	put := func(user, session, by, scope, label, text string) {
		in := scoped(write(task(by, 1), label, `["`+text+`"]`), scope)
		in.Ticket.Scope.ReturnSpec = spec("array<string>")
		in.Ticket.Actor.Tenant, in.Ticket.Actor.UserID, in.Context.SessionID = "acme", user, session
		b.Must(t, in, nil)
	}
	put("ana", "sess_1", "task_1", "session", "input", "harbour opening hours")
	put("ana", "sess_1", "task_1", "session", "other", "harbour of another step")
	put("ana", "sess_1", "task_2", "session", "own", "harbour of this step")
	put("ana", "sess_1", "task_1", "user", "mine", "harbour that ana likes")
	put("bob", "sess_3", "task_3", "tenant", "ours", "our harbour")
	put("bob", "sess_3", "task_3", "user", "bobs", "harbour that bob likes")
	for _, c := range []struct {
		scope, input string
		want         []string
	}{
		{"", "acme:sess_1:task_1:input", []string{"input", "own"}},
		{"", "", []string{"own"}},
		{"session", "acme:sess_1:task_1:input", []string{"input", "own"}},
		{"user", "acme:sess_1:task_1:mine", []string{"mine"}},
		{"tenant", "acme:sess_1:task_1:input", nil},
	} {
		in := executortest.Intent{Type: "memory.query", Args: catalog.MemoryQuery{Text: "harbour", Scope: c.scope, TopK: 50}}
		in.Ticket.Scope = task("task_2", 2)
		in.Ticket.Scope.InputKey = c.input
		in.Ticket.Actor.Tenant, in.Ticket.Actor.UserID, in.Context.SessionID = "acme", "ana", "sess_1"
		var got catalog.MemoryQueryResult
		b.Must(t, in, &got)
		var labels []string
		for _, h := range got.Hits {
			labels = append(labels, h.Key[strings.LastIndexByte(h.Key, ':')+1:])
			read := taskRead(in.Ticket.Scope, h.Key)
			read.Ticket.Actor, read.Context = in.Ticket.Actor, in.Context
			if r := b.Do(t, read); r.Code != intents.OK {
				t.Errorf("scope %q: found %s, which read_memory refuses: %+v", c.scope, h.Key, r)
			}
		}
		slices.Sort(labels)
		if !slices.Equal(labels, c.want) {
			t.Errorf("scope %q, input %q: %v, want %v", c.scope, c.input, labels, c.want)
		}
	}
}
