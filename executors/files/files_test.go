package files_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/executors/files"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

func open(t *testing.T) (*blobdir.Blobs, *executortest.Executor) {
	t.Helper()
	b, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return b, executortest.New(t, files.Name, nil, files.Handlers(b))
}

func write(args map[string]any) executortest.Intent {
	return executortest.Intent{Type: "write_temp", Args: args}
}

func lines(id string, start, n int) executortest.Intent {
	return executortest.Intent{Type: "read_lines", Args: catalog.ReadLines{FileID: id, Start: start, N: n}}
}

func TestWriteThenRead(t *testing.T) {
	_, e := open(t)
	for name, tt := range map[string]struct {
		data any
		want []string
	}{
		"text": {"a\nb\nc", []string{"b", "c"}},
		"JSON": {map[string]int{"n": 1}, []string{}},
	} {
		var file catalog.WriteTempResult
		e.Must(t, write(map[string]any{"data": tt.data}), &file)
		var got catalog.ReadLinesResult
		e.Must(t, lines(file.FileID, 1, 5), &got)
		if strings.Join(got.Lines, "|") != strings.Join(tt.want, "|") || got.More {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The same intent twice is one file: write_temp is idempotent.
func TestWriteTwice(t *testing.T) {
	_, e := open(t)
	var first, second catalog.WriteTempResult
	e.Must(t, write(map[string]any{"data": "x"}), &first)
	e.Must(t, write(map[string]any{"data": "x"}), &second)
	if first != second || first.SizeBytes != 1 {
		t.Errorf("%+v, %+v", first, second)
	}
}

func TestWriteFrom(t *testing.T) {
	b, e := open(t)
	ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader(`"kept"`))
	if err != nil {
		t.Fatal(err)
	}
	in := write(map[string]any{"from": ref})
	in.Ticket.Inputs = []intents.Input{{Pointer: "/data", Ref: ref, SHA256: strings.TrimPrefix(ref, "cas://")}}
	var file catalog.WriteTempResult
	e.Must(t, in, &file)
	if file.SizeBytes != 6 {
		t.Errorf("a file is kept as it is: %+v", file)
	}
	in.Ticket.Inputs = []intents.Input{{Pointer: "/data", Value: []byte(`"kept"`), SHA256: intents.Digest(nil)}}
	e.Must(t, in, &file)
	if file.SizeBytes != 4 {
		t.Errorf("a text is taken out of its quotes: %+v", file)
	}
	in.Ticket.Inputs[0] = intents.Input{Pointer: "/data", Ref: ref, SHA256: intents.Digest(nil)}
	if r := e.Do(t, in); r.Code != intents.MalformedArgs {
		t.Errorf("other bytes than the ticket names: %+v", r)
	}
	in.Ticket.Inputs[0] = intents.Input{Pointer: "/data", Ref: "cas://" + intents.Digest(nil)}
	if r := e.Do(t, in); r.Code != intents.NotFound {
		t.Errorf("a blob that is not there: %+v", r)
	}
	in.Ticket.Inputs = nil
	if r := e.Do(t, in); r.Code != intents.MalformedArgs {
		t.Errorf("from that nobody resolved: %+v", r)
	}
}

// Files belong to one step: another step, revision, plan or tenant, and an
// intent outside a task, find nothing.
func TestFilesArePrivate(t *testing.T) {
	_, e := open(t)
	var file catalog.WriteTempResult
	e.Must(t, write(map[string]any{"data": "x"}), &file)
	for name, change := range map[string]func(*executortest.Intent){
		"step":     func(in *executortest.Intent) { in.Ticket.Scope = &intents.TaskScopeClaim{Step: 2} },
		"revision": func(in *executortest.Intent) { in.Ticket.Scope = &intents.TaskScopeClaim{Revision: 2} },
		"plan":     func(in *executortest.Intent) { in.Ticket.Scope = &intents.TaskScopeClaim{Plan: "plan_2"} },
		"tenant":   func(in *executortest.Intent) { in.Ticket.Actor.Tenant = "evil" },
	} {
		in := lines(file.FileID, 0, 1)
		change(&in)
		if r := e.Do(t, in); r.Code != intents.NotFound {
			t.Errorf("other %s: %+v", name, r)
		}
	}
	in := lines(file.FileID, 0, 1)
	in.NoScope = true
	if r := e.Do(t, in); r.Code != intents.MalformedArgs {
		t.Errorf("outside a task: %+v", r)
	}
}

// swept counts the sweeps of real blobs.
type swept struct {
	storage.Blobs
	times chan time.Duration
}

func (s swept) Sweep(ctx context.Context, age time.Duration) (int, error) {
	s.times <- age
	return s.Blobs.Sweep(ctx, age)
}

func TestSweeperRuns(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b, err := blobdir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		scope := storage.Scope{Tenant: "acme", Plan: "p", Revision: 1, Step: 1}
		if _, err := b.Put(t.Context(), scope, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		times, ended := make(chan time.Duration), make(chan error, 1)
		go func() { ended <- files.Sweeper{Blobs: swept{b, times}, Every: time.Hour}.Run(ctx) }()
		began := time.Now()
		for range 3 {
			if age := <-times; age != time.Hour {
				t.Errorf("age %s", age)
			}
		}
		if took := time.Since(began); took != 2*time.Hour {
			t.Errorf("three sweeps in %s", took)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestSweepRemoves(t *testing.T) {
	b, e := open(t)
	var file catalog.WriteTempResult
	e.Must(t, write(map[string]any{"data": "x"}), &file)
	ctx, cancel := context.WithCancel(t.Context())
	times, ended := make(chan time.Duration), make(chan error, 1)
	go func() {
		ended <- files.Sweeper{Blobs: swept{b, times}, Every: time.Millisecond, Age: time.Nanosecond}.Run(ctx)
	}()
	<-times
	<-times // the first sweep has ended
	cancel()
	go func() {
		for range times { // what may still come
		}
	}()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(times)
	if r := e.Do(t, lines(file.FileID, 0, 1)); r.Code != intents.NotFound {
		t.Errorf("%+v", r)
	}
}
