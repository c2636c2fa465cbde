package executors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
