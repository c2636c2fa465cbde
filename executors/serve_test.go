package executors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/internal/testing/ticketvectors"
)

// readIntent is an intent that the handlers of these tests take.
func readIntent() executortest.Intent {
	return executortest.Intent{Type: "read_lines", Args: map[string]any{"file_id": "f1", "start": 0, "n": 1}}
}

func answering(h executors.Handler) map[string]executors.Handler {
	return map[string]executors.Handler{"read_lines": h, "skill.call": h}
}

func ok(context.Context, *executors.Intent) (*executors.Result, error) {
	return &executors.Result{
		Value:  map[string]any{"lines": []string{"<a&b>"}, "more": false},
		Events: []intents.ReportedEvent{executors.NewEvent("lines.read", map[string]int{"n": 1})},
	}, nil
}

func TestHandleDone(t *testing.T) {
	var got *executors.Intent
	e := executortest.New(t, "files", nil, answering(func(ctx context.Context, o *executors.Intent) (*executors.Result, error) {
		got = o
		return ok(ctx, o)
	}))
	in := e.Fill(readIntent())
	d := e.Sign(t, in)
	r := e.Send(t, d)
	if r.Status != intents.Done || r.Code != intents.OK || len(r.Events) != 1 || !strings.Contains(string(r.Result), "<a&b>") {
		t.Fatalf("report: %+v", r)
	}
	if got.ID != intents.IntentID(d.Header, d.Payload) || got.Context.TaskID != "task_1" || got.Ticket.Position != in.Position || len(got.TraceID) != 32 {
		t.Errorf("intent: %+v", got)
	}
}

// TestHandleRefuses lists what an executor must not carry out: the ticket vectors.
func TestHandleRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, e *executortest.Executor, in *executortest.Intent)
		spoil  func(t *testing.T, e *executortest.Executor, d *intents.Dispatch)
		want   intents.Code
	}{
		{name: "ticket forged by another router", want: intents.KeyUnknown, spoil: func(t *testing.T, _ *executortest.Executor, d *intents.Dispatch) {
			t.Helper()
			other := executortest.New(t, "files", nil, answering(ok))
			in := other.Fill(readIntent())
			in.Ticket.IntentID = intents.IntentID(d.Header, d.Payload)
			d.Ticket = issue(t, other.Router, in.Ticket)
		}},
		{name: "ticket forged under the router's kid", want: intents.SignatureInvalid, spoil: func(t *testing.T, e *executortest.Executor, d *intents.Dispatch) {
			t.Helper()
			in := e.Fill(readIntent())
			in.Ticket.IntentID = intents.IntentID(d.Header, d.Payload)
			forger := executortest.New(t, "files", nil, answering(ok)).Router
			forger.KID = e.Router.KID
			d.Ticket = issue(t, forger, in.Ticket)
		}},
		{name: "ticket signature cut", want: intents.SignatureInvalid, spoil: func(_ *testing.T, _ *executortest.Executor, d *intents.Dispatch) {
			d.Ticket = d.Ticket[:strings.LastIndexByte(d.Ticket, '.')+1]
		}},
		{name: "no ticket", want: intents.SignatureInvalid, spoil: func(_ *testing.T, _ *executortest.Executor, d *intents.Dispatch) { d.Ticket = "" }},
		{name: "other executor's ticket", want: intents.SignatureInvalid, change: func(_ *testing.T, _ *executortest.Executor, in *executortest.Intent) {
			in.Ticket.Executor = "python"
		}},
		{name: "other log's ticket", want: intents.SignatureInvalid, change: func(_ *testing.T, _ *executortest.Executor, in *executortest.Intent) {
			in.Ticket.Issuer = "writ/other"
		}},
		{name: "ticket for another type", want: intents.SignatureInvalid, change: func(_ *testing.T, _ *executortest.Executor, in *executortest.Intent) {
			in.Ticket.Type = "write_temp"
		}},
		{name: "type not carried out here", want: intents.UnknownIntent, change: func(_ *testing.T, _ *executortest.Executor, in *executortest.Intent) {
			in.Type, in.Ticket.Type = "write_temp", "write_temp"
		}},
		{name: "payload byte changed", want: intents.SignatureInvalid, spoil: func(_ *testing.T, _ *executortest.Executor, d *intents.Dispatch) {
			d.Payload = json.RawMessage(strings.Replace(string(d.Payload), `"n":1`, `"n":2`, 1))
		}},
		{name: "header changed", want: intents.SignatureInvalid, spoil: func(_ *testing.T, _ *executortest.Executor, d *intents.Dispatch) {
			d.Header = "A" + d.Header[1:]
		}},
		{name: "deadline passed", want: intents.ExecutorTimeout, change: func(_ *testing.T, e *executortest.Executor, in *executortest.Intent) {
			in.Ticket.Deadline = e.Now().Add(-time.Millisecond)
		}},
		{name: "unknown obligation", want: intents.PolicyDenied, change: func(_ *testing.T, _ *executortest.Executor, in *executortest.Intent) {
			in.Ticket.Obligations = []intents.Obligation{{Name: "max_bytes", Value: 10}, {Name: "watermark", Value: true}}
		}},
		{name: "obligation that cannot be read", want: intents.PolicyDenied, change: func(_ *testing.T, _ *executortest.Executor, in *executortest.Intent) {
			in.Ticket.Obligations = []intents.Obligation{{Name: "max_bytes", Value: "much"}}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := executortest.New(t, "files", nil, answering(func(context.Context, *executors.Intent) (*executors.Result, error) {
				t.Error("it was carried out")
				return nil, nil
			}))
			in := e.Fill(readIntent())
			if tt.change != nil {
				tt.change(t, e, &in)
			}
			d := e.Sign(t, in)
			if tt.spoil != nil {
				tt.spoil(t, e, &d)
			}
			r := e.Send(t, d)
			if r.Status != intents.Failed || r.Code != tt.want {
				t.Errorf("%s %s (%s), want failed %s", r.Status, r.Code, r.Reason, tt.want)
			}
			if r.Retryable != (tt.want == intents.ExecutorTimeout) {
				t.Errorf("retryable %t", r.Retryable)
			}
		})
	}
}

func issue(t *testing.T, key intents.Signer, ticket intents.Ticket) string {
	t.Helper()
	token, err := intents.IssueTicket(key, ticket)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestHandleRefusesNoise(t *testing.T) {
	e := executortest.New(t, "files", nil, answering(ok))
	good, err := json.Marshal(e.Sign(t, e.Fill(readIntent())))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{"", "null", "[]", "{}x", string(good) + "{}", strings.Replace(string(good), `"header"`, `"extra":1,"header"`, 1), strings.Repeat("a", 2<<20)} {
		var r intents.Report
		if err := json.Unmarshal(e.Service.Handle(t.Context(), "", []byte(raw)), &r); err != nil || r.Status != intents.Failed {
			t.Errorf("%.40q: %+v, %v", raw, r, err)
		}
	}
}

// A JSON encoder between router and executor may escape characters: the
// canonical bytes count.
func TestHandleEscapedPayload(t *testing.T) {
	e := executortest.New(t, "files", nil, answering(ok))
	in := e.Fill(readIntent())
	in.Context.Labels = map[string]string{"note": "a<b & c"}
	d := e.Sign(t, in)
	d.Payload = json.RawMessage(strings.ReplaceAll(string(d.Payload), "<", `\u003c`))
	if r := e.Send(t, d); r.Status != intents.Done {
		t.Errorf("%s: %s", r.Code, r.Reason)
	}
}

// TestHandlePanic: what a handler panics with may hold values of the intent, so neither the
// report nor the log has it.
func TestHandlePanic(t *testing.T) {
	handlers := answering(func(context.Context, *executors.Intent) (*executors.Result, error) { panic("secret value") })
	e := executortest.New(t, "files", nil, handlers)
	var log bytes.Buffer
	var err error
	e.Service, err = executors.New(executors.Config{
		Name: "files", Version: "1.0.0", RouterKeys: e.Keys(), Origin: executortest.Origin, Now: e.Now, Log: logging.New(&log, slog.LevelDebug, false),
	}, handlers)
	if err != nil {
		t.Fatal(err)
	}
	r := e.Do(t, readIntent())
	if r.Status != intents.Failed || r.Code != intents.ExecutorFailed || strings.Contains(r.Reason, "secret") {
		t.Errorf("report: %+v", r)
	}
	if got := log.String(); !strings.Contains(got, "handler panicked") || !strings.Contains(got, `"request_id":"`) || strings.Contains(got, "secret") {
		t.Errorf("logged %s", got)
	}
}

func TestHandleErrors(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want intents.Report
	}{
		{"plain error is not told", errors.New("secret value"), intents.Report{Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "the executor failed; its log says why"}},
		{"failure speaks", executors.Fail(intents.MemoryLock, "held"), intents.Report{Status: intents.Failed, Code: intents.MemoryLock, Reason: "held", Retryable: true}},
		{"unknown effect", executors.Fail(intents.Indeterminate, "cut"), intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "cut"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := executortest.New(t, "files", nil, answering(func(context.Context, *executors.Intent) (*executors.Result, error) { return nil, tt.err }))
			r := e.Do(t, readIntent())
			if r.Status != tt.want.Status || r.Code != tt.want.Code || r.Reason != tt.want.Reason || r.Retryable != tt.want.Retryable {
				t.Errorf("got %+v, want %+v", r, tt.want)
			}
		})
	}
}

// A handler that overruns is answered at the deadline, whether it heeds its
// context or not; what must happen at most once is then not known.
func TestHandleOverrun(t *testing.T) {
	late := make(chan struct{})
	tests := []struct {
		name, typ string
		handler   executors.Handler
		want      intents.Code
	}{
		{"heeds", "read_lines", func(ctx context.Context, _ *executors.Intent) (*executors.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, intents.ExecutorTimeout},
		{"does not heed", "read_lines", func(ctx context.Context, o *executors.Intent) (*executors.Result, error) {
			<-late
			return ok(ctx, o)
		}, intents.ExecutorTimeout},
		{"once", "skill.call", func(ctx context.Context, _ *executors.Intent) (*executors.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, intents.Indeterminate},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := executortest.New(t, "files", nil, answering(tt.handler))
			in := readIntent()
			if tt.typ == "skill.call" {
				in = executortest.Intent{Type: tt.typ, Args: map[string]any{"skill": "pay"}}
				in.Ticket.Pins = []intents.Pin{{Skill: "pay", Effect: "once"}}
			}
			in.Ticket.Deadline = time.Now().Add(50 * time.Millisecond)
			if r := e.Do(t, in); r.Code != tt.want {
				t.Errorf("%s: %s, want %s", r.Code, r.Reason, tt.want)
			}
		})
	}
	close(late)
}

func TestObligationsBindTheResult(t *testing.T) {
	people := func(context.Context, *executors.Intent) (*executors.Result, error) {
		return &executors.Result{Value: json.RawMessage(`{"output":[{"mail":"a@x","n":12345678901234567890},{"mail":"b@x"}]}`)}, nil
	}
	e := executortest.New(t, "files", nil, answering(people))
	in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "people"}}
	in.Ticket.Pins = []intents.Pin{{Skill: "people", Effect: "pure"}}
	in.Ticket.Obligations = []intents.Obligation{{Name: "mask", Value: []string{"/output/*/mail"}}, {Name: "notify", Value: "ops"}}
	if r := e.Do(t, in); string(r.Result) != `{"output":[{"mail":"[masked]","n":12345678901234567890},{"mail":"[masked]"}]}` {
		t.Errorf("masked: %s", r.Result)
	}
	in.Ticket.Obligations = []intents.Obligation{{Name: "max_bytes", Value: 20}}
	if r := e.Do(t, in); r.Code != intents.OversizedOutput || r.Result != nil {
		t.Errorf("max_bytes: %+v", r)
	}
}

// TestOnceIsNotFailed: an intent that must happen once, and whose handler has run, has not failed
// because its result cannot be delivered or its handler did not say how it ended.
func TestOnceIsNotFailed(t *testing.T) {
	for name, handler := range map[string]executors.Handler{
		"withheld": func(context.Context, *executors.Intent) (*executors.Result, error) {
			return &executors.Result{Value: json.RawMessage(`{"output":"far more than twenty bytes"}`)}, nil
		},
		"no JSON": func(context.Context, *executors.Intent) (*executors.Result, error) {
			return &executors.Result{Value: json.RawMessage(`{`)}, nil
		},
		"unknown error": func(context.Context, *executors.Intent) (*executors.Result, error) { return nil, io.ErrUnexpectedEOF },
		"panic":         func(context.Context, *executors.Intent) (*executors.Result, error) { panic("x") },
	} {
		t.Run(name, func(t *testing.T) {
			in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "pay"}}
			in.Ticket.Pins = []intents.Pin{{Skill: "pay", Effect: "once"}}
			in.Ticket.Obligations = []intents.Obligation{{Name: "max_bytes", Value: 20}}
			if r := executortest.New(t, "files", nil, answering(handler)).Do(t, in); r.Status != intents.StatusIndetermined || r.Code != intents.Indeterminate || r.Retryable {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestObligationsBindWhatIsDelivered: data that a result only names count as the result, and what lies in
// a file, a link or the details of a failure passes no mask.
func TestObligationsBindWhatIsDelivered(t *testing.T) {
	const (
		large = `{"file_id":"f1","size_bytes":30000000,"sha256":"sha256:0000000000000000000000000000000000000000000000000000000000000000","sample":["a"]}`
		image = `{"output":{"result":{"mail":"a@x"},"files":[{"type":"image","mime_type":"image/png","file_id":"f2","size_bytes":30000000}]}}`
		link  = `{"artifact":"cas://x","size_bytes":30000000,"url":"/artifacts/x"}`
		spoof = `{"output":[{"type":"image","file_id":"f3","size_bytes":-30000000},{"type":"image","file_id":"f4","size_bytes":30000000}]}`
	)
	limit := []intents.Obligation{{Name: "max_bytes", Value: 500000}}
	mask := func(p string) []intents.Obligation { return []intents.Obligation{{Name: "mask", Value: []string{p}}} }
	for name, c := range map[string]struct {
		result string
		duties []intents.Obligation
		code   intents.Code
	}{
		"a large result":       {large, limit, intents.OversizedOutput},
		"an image":             {image, limit, intents.OversizedOutput},
		"an artifact":          {link, limit, intents.OversizedOutput},
		"a size below nothing": {spoof, limit, intents.OversizedOutput},
		"mask, large":          {large, mask("/output"), intents.OversizedOutput},
		"mask, image":          {image, mask("/output/result/mail"), intents.OversizedOutput},
		"mask, of the files":   {image, mask("/output/files"), intents.OK},
		"mask, artifact":       {link, mask("/x"), intents.OversizedOutput},
	} {
		e := executortest.New(t, "files", nil, answering(func(context.Context, *executors.Intent) (*executors.Result, error) {
			return &executors.Result{Value: json.RawMessage(c.result)}, nil
		}))
		in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "people"}}
		in.Ticket.Pins = []intents.Pin{{Skill: "people", Effect: "pure"}}
		in.Ticket.Obligations = c.duties
		if r := e.Do(t, in); r.Code != c.code {
			t.Errorf("%s: %s %s", name, r.Code, r.Result)
		}
	}
	e := executortest.New(t, "files", nil, answering(func(context.Context, *executors.Intent) (*executors.Result, error) {
		f := executors.Fail(intents.ExecutorFailed, "no")
		f.Details = json.RawMessage(`{"mail":"a@x"}`)
		return nil, f
	}))
	in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "people"}}
	if r := e.Do(t, in); r.Result == nil {
		t.Errorf("details without obligations: %+v", r)
	}
	for _, in.Ticket.Obligations = range [][]intents.Obligation{mask("/output/mail"), {{Name: "max_bytes", Value: 3}}} {
		if r := e.Do(t, in); r.Code != intents.ExecutorFailed || r.Result != nil {
			t.Errorf("details: %+v", r)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	keys := intents.KeysFunc(func(string) (intents.Key, error) { return intents.Key{}, nil })
	full := executors.Config{Name: "files", Version: "1.0.0", RouterKeys: keys, Origin: "o", Now: time.Now}
	for name, spoil := range map[string]func(*executors.Config){
		"no name":   func(c *executors.Config) { c.Name = "" },
		"no keys":   func(c *executors.Config) { c.RouterKeys = nil },
		"no origin": func(c *executors.Config) { c.Origin = "" },
		"no clock":  func(c *executors.Config) { c.Now = nil },
	} {
		cfg := full
		spoil(&cfg)
		if _, err := executors.New(cfg, answering(ok)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := executors.New(full, nil); err == nil {
		t.Error("no handlers: accepted")
	}
	if err := executors.Serve(t.Context(), full, answering(ok)); err == nil {
		t.Error("no bus: served")
	}
}

// FuzzHandle: whatever arrives, the answer is a failed report.
func FuzzHandle(f *testing.F) {
	e := executortest.New(f, "files", nil, answering(ok))
	late := readIntent()
	late.Ticket.Deadline = time.Now().Add(-time.Hour)
	whole, err := json.Marshal(e.Sign(f, e.Fill(late)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"header":"","payload":{},"ticket":"a.b.c"}`))
	files, err := filepath.Glob(filepath.Join(ticketFolder, "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range files {
		var v ticketvectors.Vector
		readStrict(f, path, &v)
		raw, err := v.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r intents.Report
		if err := json.Unmarshal(e.Service.Handle(t.Context(), "", raw), &r); err != nil || r.Status != intents.Failed || r.Result != nil {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A router's key that is past its not_after signs no tickets any more.
func TestTicketOfAnOldKey(t *testing.T) {
	e := executortest.New(t, "files", nil, answering(ok))
	for _, c := range []struct {
		end  time.Duration // from now
		want intents.Code
	}{{time.Hour, intents.OK}, {-time.Second, intents.KeyRevoked}} {
		keys := intents.KeysFunc(func(kid string) (intents.Key, error) {
			k, err := e.Keys().Key(kid)
			k.NotAfter = time.Now().Add(c.end)
			return k, err
		})
		s, err := executors.New(executors.Config{Name: "files", Version: "1.0.0", RouterKeys: keys, Origin: executortest.Origin, Now: time.Now}, answering(ok))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(e.Sign(t, e.Fill(readIntent())))
		if err != nil {
			t.Fatal(err)
		}
		var r intents.Report
		if err := json.Unmarshal(s.Handle(t.Context(), "", raw), &r); err != nil || r.Code != c.want {
			t.Errorf("%s: %s %s, %v", c.end, r.Code, r.Reason, err)
		}
	}
}
