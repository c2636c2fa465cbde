package executors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
)

// written carries an intent out that writes lines, and gives them as its report has them.
func written(t *testing.T, ticket intents.Ticket, write func(o *executors.Intent)) []intents.Line {
	t.Helper()
	var intent *executors.Intent
	e := executortest.New(t, "python", nil, map[string]executors.Handler{"exec_python": func(_ context.Context, o *executors.Intent) (*executors.Result, error) {
		intent = o
		write(o)
		return &executors.Result{Value: map[string]any{"output": 1}}, nil
	}})
	r := e.Do(t, executortest.Intent{Type: "exec_python", Args: map[string]string{"script": "print(1)"}, Ticket: ticket})
	if r.Status != intents.Done {
		t.Fatalf("%+v", r)
	}
	intent.Write(intents.LevelInfo, "late", "after the report", nil)
	return r.Lines
}

func texts(lines []intents.Line) (out []string) {
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s %s %s", l.Level, l.Source, l.Text))
	}
	return out
}

// A report has the written lines, bounded, and the number of dropped ones.
func TestLinesOfAReport(t *testing.T) {
	got := texts(written(t, intents.Ticket{}, func(o *executors.Intent) {
		w := executors.NewLineWriter(o, intents.LevelInfo, "python:stderr")
		for _, part := range []string{"one\ntw", "o\r\n\nthree \x1b[2J\xff", strings.Repeat("x", 5000), "\nfour"} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		w.End()
		w.End()
		o.Write("shouting", "crm:message", `{"a":1}`, json.RawMessage(`{"a":1}`))
	}))
	long := `info python:stderr three \x1b[2J` + "\uFFFD"
	if len(got) != 5 || !strings.HasPrefix(got[2], long) || len(got[2]) > intents.MaxLine+40 || !strings.HasSuffix(got[2], "…") {
		t.Fatalf("%q", got)
	}
	if d := cmp.Diff([]string{"info python:stderr one", "info python:stderr two", "info python:stderr four", `info crm:message {"a":1}`}, slices.Delete(got, 2, 3)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	many := written(t, intents.Ticket{}, func(o *executors.Intent) {
		for n := range 1000 {
			o.Write(intents.LevelInfo, "s", fmt.Sprint(n), nil)
		}
	})
	if last := many[len(many)-1]; len(many) != intents.MaxLines+1 || last.Text != "800 more lines were left out" || last.Source != intents.SourceWrit || last.Level != intents.LevelWarning {
		t.Errorf("%d lines, the last %+v", len(many), last)
	}
	large := written(t, intents.Ticket{}, func(o *executors.Intent) {
		for range 50 {
			o.Write(intents.LevelInfo, "s", strings.Repeat("y", 1000), nil)
		}
	})
	if size := len(texts(large)) * 1000; size > intents.MaxLineBytes+1000 || len(large) < 20 {
		t.Errorf("%d lines of 1,000 bytes", len(large))
	}
	for _, lines := range [][]intents.Line{many, large} {
		if d := cmp.Diff(lines, intents.BoundLines("skills", lines)); d != "" {
			t.Errorf("a router would change them (-ours +its)\n%s", d)
		}
	}
	masked := intents.Ticket{Obligations: []intents.Obligation{{Name: "mask", Value: "/output"}}}
	if got := written(t, masked, func(o *executors.Intent) { o.Write(intents.LevelInfo, "s", "secret", nil) }); len(got) != 0 {
		t.Errorf("under a mask: %q", texts(got))
	}
}

// While an intent runs its lines are published: the first with the ticket, each once and in order,
// and at the end that there are no more.
func TestLinesWhileItRuns(t *testing.T) {
	server, err := natsserver.Start(t.Context(), natsserver.Options{
		Dir: t.TempDir(), Executors: map[string][]string{"python": {"exec_python"}, "logs": {"logs.stream"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	connect := func(user string) bus.Conn {
		c, err := server.Connect(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	heard, listening, ended := make(chan executors.LogChunk, 100), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ear := connect("logs")
	go func() {
		ended <- bus.Listen(ctx, ear, bus.Log("*"), listening, func(subject string, data []byte) {
			var w executors.LogChunk
			if err := json.Unmarshal(data, &w); err != nil || subject != bus.Log("python") {
				t.Errorf("%s: %v", subject, err)
			}
			heard <- w
		})
	}()
	<-listening

	next := make(chan struct{})
	handlers := map[string]executors.Handler{"exec_python": func(_ context.Context, o *executors.Intent) (*executors.Result, error) {
		for n := range 3 {
			o.Write(intents.LevelInfo, "python:stderr", fmt.Sprint(n), nil)
			<-next
		}
		return &executors.Result{Value: map[string]any{"output": 1}}, nil
	}}
	e := executortest.New(t, "python", nil, handlers)
	if e.Service, err = executors.New(executors.Config{Bus: connect("python"), Name: "python", Version: "1.0.0", RouterKeys: e.Keys(), Origin: executortest.Origin, Now: time.Now}, handlers); err != nil {
		t.Fatal(err)
	}
	reported := make(chan intents.Report, 1)
	go func() {
		reported <- e.Do(t, executortest.Intent{Type: "exec_python", Args: map[string]string{"script": "print(1)"}, Position: 7})
	}()
	var got []string
	for first := true; len(got) < 3; first = false {
		w := <-heard
		if (w.Ticket != "") != first || w.First != len(got) || w.Position != 7 || w.Attempt != 1 || w.Ended {
			t.Errorf("%+v", w)
		}
		for _, l := range w.Lines {
			got = append(got, l.Text)
		}
		next <- struct{}{}
	}
	if d := cmp.Diff([]string{"0", "1", "2"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if w, report := <-heard, <-reported; !w.Ended || len(w.Lines) > 0 || len(report.Lines) != 3 {
		t.Errorf("%+v, %d lines in the report", w, len(report.Lines))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
