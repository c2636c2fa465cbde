package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"aob.dev/writ/agentic/model"
)

// TestStopAnswersCalls: requests that are open when writ is told to stop are answered: each by its
// interface's own error, which names the plan and says how to ask for it again; a stream by an
// error event at its regular end. After the restart the plans are there, and go on.
func TestStopAnswersCalls(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var reached sync.WaitGroup
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	arrived := make(chan struct{}, 100)
	srv := serveSkills(t, skill{name: "parcel_weigh", about: "Weighs parcels.", input: `{"type":"object"}`, do: func(json.RawMessage) (any, error) {
		arrived <- struct{}{}
		<-release
		return map[string]int{"grams": 700}, nil
	}})
	m, number := &mind{}, atomic.Int64{}
	x := boot(t, general{m, func(req model.Request) *model.Response {
		tool := offered(req, "parcel_weigh")
		if tool == nil || len(exchanges(req)) > 0 {
			return &model.Response{Text: "It weighs 700 grams.", Model: m.Name()}
		}
		n := number.Add(1)
		return &model.Response{Calls: []model.Call{{ID: fmt.Sprint("call_", n), Name: tool.Name, Arguments: fmt.Sprintf(`{"number":%d}`, n)}}, Model: m.Name()}
	}}, srv.url)
	me := x.as("local")
	session := x.mcpSession(me)

	type answer struct {
		status int
		header http.Header
		body   string
		err    error
	}
	const chat = `{"model":"general","messages":[{"role":"user","content":"Weigh it"}]`
	requests := map[string]struct{ path, body string }{
		"run":              {"/agent/run", `{"agent":"general","message":"Weigh it"}`},
		"run, streamed":    {"/agent/run", `{"agent":"general","message":"Weigh it","stream":true}`},
		"chat":             {"/chat/s1", `{"messages":[{"role":"user","content":"Weigh it"}]}`},
		"completion":       {"/v1/chat/completions", chat + `}`},
		"chunks":           {"/v1/chat/completions", chat + `,"stream":true}`},
		"response":         {"/v1/responses", `{"model":"general","input":"Weigh it"}`},
		"response, events": {"/v1/responses", `{"model":"general","input":"Weigh it","stream":true}`},
		"tool":             {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"parcel_weigh","arguments":{"tool":1}}}`},
		"tool, progress":   {"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"parcel_weigh","arguments":{"tool":2},"_meta":{"progressToken":"p"}}}`},
		"agent as a tool":  {"/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask_general","arguments":{"task":"Weigh it"}}}`},
	}
	var mu sync.Mutex
	answers := map[string]answer{}
	for name, r := range requests {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.url+r.path, strings.NewReader(strings.ReplaceAll(r.body, "Weigh it", "Weigh it, "+name))) // else they are one request
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.path, "/v1/"):
			req.Header.Set("Authorization", "Bearer "+x.key)
		case r.path == "/mcp":
			req.Header.Set("Accept", "application/json, text/event-stream")
			req.Header.Set("Mcp-Session-Id", session)
			fallthrough
		default:
			req.Header.Set("X-Api-Key", x.key)
		}
		reached.Go(func() {
			var a answer
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				var raw []byte
				raw, err = io.ReadAll(resp.Body)
				a.status, a.header, a.body = resp.StatusCode, resp.Header, string(raw)
				_ = resp.Body.Close()
			}
			a.err = err
			mu.Lock()
			defer mu.Unlock()
			answers[name] = a
		})
	}
	for range requests {
		<-arrived // every call is at its server
	}
	x.end(syscall.SIGTERM)
	reached.Wait()
	free()
	x.start()

	const hint = "after the restart follow it: GET /agent/plans/plan_"
	for name, a := range answers {
		if a.err != nil {
			t.Errorf("%s: the connection was cut: %v", name, a.err)
			continue
		}
		streamed := strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream")
		rpc := requests[name].path == "/mcp"
		if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[streamed || rpc]; a.status != want || a.header.Get("Retry-After") == "" != (streamed || rpc) {
			t.Errorf("%s: HTTP %d, Retry-After %q", name, a.status, a.header.Get("Retry-After"))
		}
		_, after, ok := strings.Cut(a.body, hint)
		if !ok || !strings.Contains(a.body, "IN_FLIGHT") && name != "response, events" {
			t.Errorf("%s: %s", name, a.body)
			continue
		}
		switch name {
		case "run, streamed", "chat":
			if !strings.Contains(a.body, "event: error\n") {
				t.Errorf("%s: no error event: %s", name, a.body)
			}
		case "chunks":
			if !strings.Contains(a.body, `"error":{`) || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
				t.Errorf("%s: %s", name, a.body)
			}
		case "response, events":
			if !strings.Contains(a.body, "event: response.failed\n") {
				t.Errorf("%s: %s", name, a.body)
			}
		case "completion", "response":
			if !strings.Contains(a.body, `"error":{`) {
				t.Errorf("%s is not in OpenAI's form: %s", name, a.body)
			}
		}
		plan := "plan_" + after[:strings.IndexFunc(after, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })]
		if v := x.plan(plan); v.PlanID != plan {
			t.Errorf("%s: plan %s is not there: %+v", name, plan, v)
		}
		if !rpc || name == "agent as a tool" {
			if v := x.finished(plan); v.Status != "complete" {
				t.Errorf("%s: %s ended as %s: %+v", name, plan, v.Status, v.Failure)
			}
		}
	}
}
