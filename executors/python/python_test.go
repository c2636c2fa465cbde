package python_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// runner is one real sandbox for all tests of this process.
var runner *sandbox.Sandbox

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "python-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755) // sandboxes of another user walk through it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The context is that of the process: there is no test yet.
	if runner, err = sandbox.Open(context.Background(), sandbox.Config{Dir: dir, Workers: 1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := runner.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var scope = storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 1}

func open(t *testing.T) (*blobdir.Blobs, *executortest.Executor) {
	t.Helper()
	b, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return b, executortest.New(t, python.Name, nil, python.Handlers(runner, b))
}

func exec(args catalog.ExecPython) executortest.Intent {
	in := executortest.Intent{Type: "exec_python", Args: args}
	return in
}

// TestExecOverFile is the path of large data: a file of the step goes in
// as a stream, rows come out inline, and the facts say what ran.
func TestExecOverFile(t *testing.T) {
	b, e := open(t)
	var feed strings.Builder
	feed.WriteString(`{"type":"feed","rows":[`)
	for i := range 3000 {
		if i > 0 {
			feed.WriteString(",\n")
		}
		fmt.Fprintf(&feed, `{"id":%d,"text":"a, b [%d]"}`, i, i)
	}
	feed.WriteString("]}")
	file, err := b.Put(t.Context(), scope, strings.NewReader(feed.String()))
	if err != nil {
		t.Fatal(err)
	}
	script := "import json\nwith open(input_file) as f: rows = json.load(f)['rows']\nprint(json.dumps([r['id'] for r in rows if r['id'] % 1000 == 0]))"
	in := exec(catalog.ExecPython{Script: script, From: file.ID})
	in.Ticket.Inputs = []intents.Input{{Pointer: "/input", Ref: file.ID, SHA256: file.SHA256, Size: file.Size}}
	var got catalog.ExecPythonResult
	r := e.Must(t, in, &got)
	if string(got.Output) != "[0,1000,2000]" && string(got.Output) != "[0, 1000, 2000]" {
		t.Errorf("output %s", got.Output)
	}
	event := executortest.EventPayload(t, r, "python_script.executed")
	if ms, ok := event["duration_ms"].(float64); !ok || ms < 0 { // a fast one takes 0
		t.Errorf("duration %v", event["duration_ms"])
	}
	if _, ok := event["queued_ms"].(float64); !ok {
		t.Errorf("waited %v", event["queued_ms"])
	}
	delete(event, "duration_ms")
	delete(event, "queued_ms")
	want := map[string]any{
		"script_hash": intents.Digest([]byte(script)), "driver": runner.Driver(), "python": runner.Python(), "exit_code": 0.0,
		"input_rows": 3000.0, "output_rows": 3.0, "input_bytes": float64(file.Size), "output_bytes": 16.0,
		"outcome": "ok", "limit": "",
	}
	if diff := cmp.Diff(want, event); diff != "" {
		t.Error(diff)
	}
	kept, _, err := b.Fetch(t.Context(), "acme", "cas://"+intents.Digest([]byte(script)))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if text, err := io.ReadAll(kept); err != nil || string(text) != script {
		t.Errorf("kept %q, %v", text, err)
	}
}

func TestExecInputs(t *testing.T) {
	_, e := open(t)
	const echo = "print(open(input_file).read() if input_file else 'null')"
	given := exec(catalog.ExecPython{Script: echo, Input: json.RawMessage(`{"n": 1}`)})
	value := exec(catalog.ExecPython{Script: echo, From: "x"})
	value.Ticket.Inputs = []intents.Input{{Pointer: "/input", Value: json.RawMessage(`["v"]`)}}
	for want, in := range map[string]executortest.Intent{`{"n":1}`: given, `["v"]`: value, `null`: exec(catalog.ExecPython{Script: echo})} {
		var got catalog.ExecPythonResult
		e.Must(t, in, &got)
		if string(got.Output) != want {
			t.Errorf("got %s, want %s", got.Output, want)
		}
	}
}

// TestExecFails: every outcome but ok is a failure with its code; what the
// script reports of itself is in the details only.
func TestExecFails(t *testing.T) {
	tests := []struct {
		name, script, outcome, says string
		seconds                     int
		want                        intents.Code
	}{
		{"exception", "def f(x):\n    return x['secret']\n\nf({})", "script_error", "line 2, in f", 0, intents.ExecutorFailed},
		{"exit", "raise SystemExit(3)", "script_error", "", 0, intents.ExecutorFailed},
		{"endless", "while True: pass", "timeout", "", 1, intents.ExecutorTimeout},
		{"too much", "print('x' * 600_000)", "oversized_output", "", 0, intents.OversizedOutput},
		{"memory", "x = 'x' * (2 << 30)", "memory", "", 0, intents.ExecutorFailed},
		{"nothing", "pass", "not_json", "", 0, intents.ExecutorFailed},
		{"text", "print('ten rows')", "not_json", "", 0, intents.ExecutorFailed},
		{"two documents", "print(1); print(2)", "not_json", "more follows", 0, intents.ExecutorFailed},
		{"member twice", "print('{\"n\": \"x\", \"n\": 2}')", "not_json", "member stands twice", 0, intents.ExecutorFailed},
		{"half a character", "import json; print(json.dumps('\\ud83d'))", "not_json", "surrogate", 0, intents.ExecutorFailed},
		{"too deep", "print('[' * 5000 + ']' * 5000)", "not_json", "nested deeper", 0, intents.ExecutorFailed},
		{"not a number", "import json; print(json.dumps(float('nan')))", "not_json", "", 0, intents.ExecutorFailed},
	}
	_, e := open(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := e.Do(t, exec(catalog.ExecPython{Script: tt.script, TimeoutSec: tt.seconds}))
			var details struct{ Outcome, Error string }
			if err := json.Unmarshal(r.Result, &details); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if r.Status != intents.Failed || r.Code != tt.want || r.Retryable || details.Outcome != tt.outcome || !strings.Contains(details.Error, tt.says) {
				t.Errorf("%s retryable %t, %+v", r.Code, r.Retryable, details)
			}
			if strings.Contains(r.Reason, "secret") || executortest.EventPayload(t, r, "python_script.executed") == nil {
				t.Errorf("%q, facts %v", r.Reason, r.Events)
			}
		})
	}
}

// A result of 50,000 bytes and more is a file of the step.
func TestExecLargeOutput(t *testing.T) {
	b, e := open(t)
	var got catalog.ExecPythonResult
	e.Must(t, exec(catalog.ExecPython{Script: "import json; print(json.dumps([{'i': i} for i in range(9000)]))"}), &got)
	if got.Output != nil || got.Reference == nil || len(got.Sample) != 20 || got.Sample[1] != `{"i":0},` {
		t.Fatalf("%+v", got)
	}
	r, _, err := b.Open(t.Context(), scope, got.FileID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rows []map[string]int
	if err := json.NewDecoder(r).Decode(&rows); err != nil || len(rows) != 9000 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// The sandbox is closed to the host, also on this path.
func TestExecIsIsolated(t *testing.T) {
	_, e := open(t)
	script := `
import json, socket
found = []
try:
    socket.create_connection(("127.0.0.1", 1), 0.2)
except ConnectionRefusedError:
    found.append("network")
except OSError:
    pass
try:
    open("/etc/passwd").read()
    found.append("host files")
except OSError:
    pass
print(json.dumps(found))`
	r := e.Do(t, exec(catalog.ExecPython{Script: script}))
	switch {
	case r.Status == intents.Done && string(r.Result) == `{"output":[]}`:
	case r.Code == intents.ExecutorFailed && strings.Contains(string(r.Result), `"policy"`): // killed for trying
	default:
		t.Errorf("%+v %s", r, r.Result)
	}
}

// A policy may ask for a stronger driver than there is.
func TestExecDriverObligation(t *testing.T) {
	_, e := open(t)
	for _, name := range sandbox.DriverNames() {
		in := exec(catalog.ExecPython{Script: "print(1)"})
		in.Ticket.Obligations = []intents.Obligation{{Name: "driver", Value: name}}
		r := e.Do(t, in)
		enough := r.Status == intents.Done
		if refused := r.Code == intents.PolicyDenied; enough == refused {
			t.Errorf("%s: %+v", name, r)
		}
		if name == runner.Driver() && !enough {
			t.Errorf("%s under %s: %+v", name, runner.Driver(), r)
		}
	}
}

func TestExecMissingInput(t *testing.T) {
	_, e := open(t)
	in := exec(catalog.ExecPython{Script: "print(1)", From: "f_gone"})
	in.Ticket.Inputs = []intents.Input{{Pointer: "/input", Ref: "f_gone"}}
	if r := e.Do(t, in); r.Code != intents.NotFound {
		t.Errorf("%+v", r)
	}
}
