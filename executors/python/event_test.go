package python_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// brokenBlobs cannot keep a result, and break off while they are read.
type brokenBlobs struct{ storage.Blobs }

var errBlobs = errors.New("disk on fire")

func (brokenBlobs) Put(context.Context, storage.Scope, io.Reader) (storage.File, error) {
	return storage.File{}, errBlobs
}

func (b brokenBlobs) Open(ctx context.Context, s storage.Scope, id string) (io.ReadCloser, storage.File, error) {
	r, file, err := b.Blobs.Open(ctx, s, id)
	if err != nil {
		return nil, file, err
	}
	return breaking{r}, file, nil
}

type breaking struct{ io.ReadCloser }

func (breaking) Read([]byte) (int, error) { return 0, errBlobs }

// TestEveryRunHasEvent: a sandbox that took the script gives the event, whatever the
// script, its input, its result or its end.
func TestEveryRunHasEvent(t *testing.T) {
	const large = "import json; print(json.dumps([{'i': i} for i in range(9000)]))"
	b, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	whole := executortest.New(t, python.Name, nil, python.Handlers(runner, b))
	broken := executortest.New(t, python.Name, nil, python.Handlers(runner, brokenBlobs{b}))
	file, err := b.Put(t.Context(), scope, strings.NewReader("data"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		e       *executortest.Executor
		script  string
		from    string
		left    time.Duration
		outcome string
		code    intents.Code
	}{
		"says that its input did not arrive": {whole, "import os; os.write(4, b'Ix'); os._exit(0)", "", 0, "ok", intents.ExecutorFailed},
		"says that it was never built":       {whole, "import os; os.write(4, b'F\\1\\0\\1\\0'); os._exit(125)", "", 0, "script_error", intents.ExecutorFailed},
		"kills itself":                       {whole, "import os; os.kill(os.getpid(), 9)", "", 0, "", intents.ExecutorFailed},
		"ends without a word":                {whole, "import os; os._exit(0)", "", 0, "ok", intents.ExecutorFailed},
		"closes everything":                  {whole, "import os; os.closerange(0, 64); os._exit(3)", "", 0, "script_error", intents.ExecutorFailed},
		"outlasts its intent":                {whole, "import time; time.sleep(60)", "", 2 * time.Second, "canceled", intents.ExecutorTimeout},
		"has a result that cannot be kept":   {broken, large, "", 0, "ok", intents.ExecutorFailed},
		"has an input that cannot be read":   {broken, "print(1)", file.ID, 0, "no_input", intents.ExecutorFailed},
	} {
		t.Run(name, func(t *testing.T) {
			in := exec(catalog.ExecPython{Script: tt.script, From: tt.from})
			if tt.from != "" {
				in.Ticket.Inputs = []intents.Input{{Pointer: "/input", Ref: file.ID, SHA256: file.SHA256, Size: file.Size}}
			}
			if tt.left != 0 {
				in.Ticket.Deadline = time.Now().Add(tt.left)
			}
			r := tt.e.Do(t, in)
			event := executortest.EventPayload(t, r, "python_script.executed")
			if r.Code != tt.code || event == nil || event["script_hash"] != intents.Digest([]byte(tt.script)) {
				t.Fatalf("%s %s, facts %v", r.Code, r.Reason, r.Events)
			}
			if tt.outcome != "" && event["outcome"] != tt.outcome {
				t.Errorf("outcome %v, want %s", event["outcome"], tt.outcome)
			}
		})
	}
}

// TestNoRunHasNoEvent: an intent that got no sandbox has no run to tell.
func TestNoRunHasNoEvent(t *testing.T) {
	b, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := executortest.New(t, python.Name, nil, map[string]executors.Handler{
		"exec_python": python.Handlers(stopped{runner}, b)["exec_python"],
	})
	r := e.Do(t, exec(catalog.ExecPython{Script: "print(1)", Input: json.RawMessage(`1`)}))
	if r.Code != intents.Abandoned || !r.Retryable || len(r.Events) != 0 {
		t.Errorf("%+v", r)
	}
}

// stopped is a sandbox that is told to end.
type stopped struct{ sandbox.Runner }

func (stopped) Run(context.Context, sandbox.Job) (sandbox.Result, error) {
	return sandbox.Result{}, sandbox.ErrClosed
}

// What a script writes to standard error, and its traceback, are lines of its intent, however it
// ends.
func TestLines(t *testing.T) {
	_, e := open(t)
	r := e.Do(t, exec(catalog.ExecPython{Script: "import sys\nprint('one', file=sys.stderr)\nsys.stderr.write('two')\nprint(1)"}))
	if got := lineTexts(r); cmp.Diff([]string{"info python:stderr one", "info python:stderr two"}, got) != "" || r.Status != intents.Done {
		t.Errorf("%q, %s", got, r.Status)
	}
	r = e.Do(t, exec(catalog.ExecPython{Script: "import sys\nprint('one', file=sys.stderr)\nraise ValueError('no')"}))
	got := lineTexts(r)
	if len(got) < 3 || got[0] != "info python:stderr one" || got[len(got)-1] != "error python:traceback ValueError: no" {
		t.Errorf("%q", got)
	}
}

func lineTexts(r intents.Report) (out []string) {
	for _, l := range r.Lines {
		out = append(out, string(l.Level)+" "+l.Source+" "+l.Text)
	}
	return out
}
