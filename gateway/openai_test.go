package gateway

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// bearer is the header in which clients of OpenAI's API send a key.
func bearer() http.Header {
	return http.Header{"X-Api-Key": nil, "Authorization": {"Bearer " + anaKey}}
}

// refusedOpenAI checks that a request is refused in OpenAI's form.
func (w *world) refusedOpenAI(method, path, body string, header http.Header, code intents.Code, param any) {
	w.t.Helper()
	var got struct {
		Error struct {
			Message, Type string
			Code          intents.Code
			Param         any
		}
	}
	resp := w.call(method, path, body, header, &got)
	e := got.Error
	if resp.StatusCode != code.Info().Status || e.Code != code || e.Param != param || e.Message == "" || e.Type == "" || resp.Header.Get("Content-Type") != "application/json" {
		w.t.Errorf("%s %s %s: %d %+v, want %s at %v", method, path, body, resp.StatusCode, e, code, param)
	}
}

// counting closes a plan whose models have used tokens.
func counting(w **world) script {
	return func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		(*w).change(h.PlanID, func(p *catalog.PlanView) {
			p.Usage = []catalog.Usage{{InputTokens: 7, OutputTokens: 2}, {InputTokens: 3, OutputTokens: 1}}
		})
		completing(w)(h, say)
	}
}

// streamed returns the plan of a stream and its events: their names, if any, and their data.
func (w *world) streamed(path, body string) (plan string, names, data []string) {
	w.t.Helper()
	resp := w.do(w.t.Context(), "POST", path, body, bearer())
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			names = append(names, name)
		}
		if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, d)
		}
	}
	return resp.Header.Get("X-Plan-Id"), names, data
}

func decode[T any](t *testing.T, doc string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

const sampleRequest = `{"model":"planner","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Which?"},{"role":"assistant","content":"Which what?"},
{"role":"user","content":[{"type":"text","text":"` + question + `"}]}],"temperature":0.5,"tools":[],"stop":null`

// A completion is the answer of a turn in the session of the header.
func TestCompletion(t *testing.T) {
	var w *world
	w = newWorld(t, counting(&w))
	header := bearer()
	header["X-Session-Id"] = []string{"s7"}
	var got map[string]any
	resp := w.call("POST", "/v1/chat/completions", sampleRequest+`}`, header, &got)
	open := w.submits("plan.open")[0]
	if resp.StatusCode != http.StatusOK || open.Principal().Session != "s7" || open.Grant().Subject != "ana" {
		t.Fatalf("%d %v, principal %+v", resp.StatusCode, got, open.Principal())
	}
	if plan, _ := w.plan(open.Context().PlanID); plan.Task != question {
		t.Errorf("task %q", plan.Task)
	}
	writ, _ := got["writ"].(map[string]any)
	want := map[string]any{
		"id": open.Context().PlanID, "object": "chat.completion", "created": got["created"], "model": "planner",
		"choices": []any{map[string]any{
			"index": 0.0, "message": map[string]any{"role": "assistant", "content": "Two outlets.", "refusal": nil}, "logprobs": nil, "finish_reason": "stop",
		}},
		"usage": map[string]any{"prompt_tokens": 10.0, "completion_tokens": 3.0, "total_tokens": 13.0}, "writ": got["writ"],
	}
	if d := cmp.Diff(want, got); d != "" || got["created"] == 0.0 || writ["status"] != "complete" || writ["session_id"] != "s7" || writ["response"] != nil {
		t.Errorf("%v %s", writ, d)
	}
}

// The chunks of a completion, as sent on the wire.
func TestCompletionChunks(t *testing.T) {
	var w *world
	w = newWorld(t, counting(&w))
	for _, usage := range []bool{false, true} {
		body, empty := sampleRequest+`,"stream":true}`, ""
		if usage {
			body, empty = sampleRequest+`,"stream":true,"stream_options":{"include_usage":true}}`, `,"usage":null`
		}
		plan, _, got := w.streamed("/v1/chat/completions", body)
		chunk := func(delta, finish, writ string) string {
			if writ != "" {
				writ = `,"writ":` + writ
			}
			return `{"choices":[{"delta":` + delta + `,"finish_reason":` + finish + `,"index":0,"logprobs":null}],"created":0,"id":"` + plan + `","model":"planner","object":"chat.completion.chunk"` + empty + writ + `}`
		}
		want := []string{
			chunk(`{"content":"","role":"assistant"}`, "null", ""),
			chunk(`{}`, "null", `{"seq":0,"kind":"status","data":{"state":"planning"}}`),
			chunk(`{"content":"Two "}`, "null", ""),
			chunk(`{"content":"outlets."}`, "null", ""),
			chunk(`{}`, `"stop"`, "{}"),
		}
		if usage {
			want = append(want, `{"choices":[],"created":0,"id":"`+plan+`","model":"planner","object":"chat.completion.chunk","usage":{"completion_tokens":3,"prompt_tokens":10,"total_tokens":13}}`)
		}
		want = append(want, "[DONE]")
		for i, line := range got {
			if line == "[DONE]" {
				continue
			}
			c := decode[map[string]any](t, line)
			if c["created"] == 0.0 {
				t.Errorf("no time in %s", line)
			}
			c["created"] = 0
			writ, _ := c["writ"].(map[string]any)
			switch {
			case writ["seq"] != nil:
				c["writ"] = json.RawMessage(`{"seq":0,"kind":"status","data":{"state":"planning"}}`)
			case writ["status"] == "complete":
				c["writ"] = json.RawMessage(`{}`)
			}
			got[i] = string(marshal(t, c))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("usage %t: %s", usage, d)
		}
	}
}

// endings are scripts of a turn, and its text: whole, and streamed.
var endings = map[string]struct {
	play         func(plan string, say func(bus.FrameKind, any))
	text, stream string
	status       string
}{
	"a model that fell back": {func(_ string, say func(bus.FrameKind, any)) {
		say(bus.FrameToken, bus.ContentData{Text: "Tw"})
		say(bus.FrameToken, bus.ContentData{Reset: true})
		say(bus.FrameToken, bus.ContentData{Text: "There "})
		say(bus.FrameAnswer, bus.AnswerData{Response: "There are two."})
	}, "There are two.", "Tw\n\nThere are two.", "complete"},
	"pieces that are lost": {func(_ string, say func(bus.FrameKind, any)) {
		say(bus.FrameToken, bus.ContentData{Text: "are"})
		say(bus.FrameAnswer, bus.AnswerData{Response: "There are two."})
	}, "There are two.", "are\n\nThere are two.", "complete"},
	"all in pieces": {func(_ string, say func(bus.FrameKind, any)) {
		say(bus.FrameToken, bus.ContentData{Text: "There "})
		say(bus.FrameToken, bus.ContentData{Text: "are two."})
		say(bus.FrameAnswer, bus.AnswerData{Response: "There are two."})
	}, "There are two.", "There are two.", "complete"},
	"a failure": {func(_ string, say func(bus.FrameKind, any)) {
		say(bus.FrameError, bus.ErrorData{Reason: "Nobody counts stars."})
	}, "Nobody counts stars.", "Nobody counts stars.", "failed"},
	"a hold": {func(plan string, say func(bus.FrameKind, any)) {
		say(bus.FramePendingApproval, bus.PendingApprovalData{PlanID: plan, Approval: bus.Approval{IntentID: "sha256:1", Reason: "It is late."}})
	}, "This waits until somebody approves it. It is late.", "This waits until somebody approves it. It is late.", "held"},
	"a hold in the agent's words": {func(plan string, say func(bus.FrameKind, any)) {
		say(bus.FramePendingApproval, bus.PendingApprovalData{PlanID: plan, Text: "Two are closed, one waits.", Approval: bus.Approval{IntentID: "sha256:1", Reason: "It is late."}})
	}, "Two are closed, one waits.", "Two are closed, one waits.", "held"},
}

// Every end of a turn is an answer in both APIs, with its state beside it.
func TestOpenAIEndings(t *testing.T) {
	for name, e := range endings {
		w := newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
			e.play(h.PlanID, say)
			say(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: e.status})
		})
		check := func(api, text, want string, r runReply) {
			if text != want || r.Status != e.status || r.PlanID == "" || (r.Status == "held") != (r.Approval != nil) {
				t.Errorf("%s, %s: %q, want %q; %+v", name, api, text, want, r)
			}
		}
		whole := w.do(t.Context(), "POST", "/v1/chat/completions", sampleRequest+"}", bearer())
		var c struct {
			Choices []struct{ Message struct{ Content string } }
			Writ    runReply
		}
		if err := json.NewDecoder(whole.Body).Decode(&c); err != nil || len(c.Choices) != 1 {
			t.Fatalf("%s: %+v, %v", name, c, err)
		}
		_ = whole.Body.Close()
		check("completion", c.Choices[0].Message.Content, e.text, c.Writ)

		_, _, chunks := w.streamed("/v1/chat/completions", sampleRequest+`,"stream":true}`)
		text, last := "", runReply{}
		for _, line := range chunks[:len(chunks)-1] {
			chunk := decode[struct {
				Choices []struct {
					Delta  struct{ Content string }
					Finish string `json:"finish_reason"`
				}
				Writ runReply
			}](t, line)
			text += chunk.Choices[0].Delta.Content
			if chunk.Choices[0].Finish == "stop" {
				last = chunk.Writ
			}
		}
		check("chunks", text, e.stream, last)

		input := `{"model":"planner","input":"` + question + `"`
		whole = w.do(t.Context(), "POST", "/v1/responses", input+"}", bearer())
		type body struct {
			Output []struct{ Content []struct{ Text string } }
			Writ   runReply
		}
		var r body
		if err := json.NewDecoder(whole.Body).Decode(&r); err != nil || len(r.Output) != 1 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		_ = whole.Body.Close()
		check("response", r.Output[0].Content[0].Text, e.text, r.Writ)

		_, _, events := w.streamed("/v1/responses", input+`,"stream":true}`)
		text = ""
		for _, line := range events {
			text += decode[struct{ Delta string }](t, line).Delta
		}
		r = decode[struct{ Response body }](t, events[len(events)-1]).Response
		check("events", text, e.stream, r.Writ)
		check("events, at the end", r.Output[0].Content[0].Text, e.stream, r.Writ)
	}
}

// The events of a response come in OpenAI's order, with numbers.
func TestResponseEvents(t *testing.T) {
	var w *world
	w = newWorld(t, counting(&w))
	body := `{"model":"planner","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"` + question + `"}]}],"stream":true,"tools":[],"include":[]}`
	_, names, data := w.streamed("/v1/responses", body)
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.delta", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Fatal(d)
	}
	for i, line := range data {
		e := decode[struct {
			Type     string
			Number   int `json:"sequence_number"`
			Response struct {
				Usage map[string]any
			}
		}](t, line)
		if e.Type != names[i] || e.Number != i {
			t.Errorf("event %d: %s", i, line)
		}
		if i == len(data)-1 && (e.Response.Usage["input_tokens"] != 10.0 || e.Response.Usage["output_tokens"] != 3.0 || e.Response.Usage["total_tokens"] != 13.0) {
			t.Errorf("usage %v", e.Response.Usage)
		}
	}
}

func TestModels(t *testing.T) {
	w := newWorld(t, nil)
	var got struct{ Data []struct{ ID, Object string } }
	resp := w.call("GET", "/v1/models", "", bearer(), &got)
	if resp.StatusCode != http.StatusOK || len(got.Data) != 1 || got.Data[0].ID != "planner" || got.Data[0].Object != "model" {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
	var one struct{ ID, Object string }
	if resp := w.call("GET", "/v1/models/planner", "", bearer(), &one); resp.StatusCode != http.StatusOK || one.ID != "planner" || one.Object != "model" {
		t.Errorf("%d %+v", resp.StatusCode, one)
	}
	var none struct {
		Error struct{ Type, Code, Param string }
	}
	if resp := w.call("GET", "/v1/models/plannr", "", bearer(), &none); resp.StatusCode != http.StatusNotFound || none.Error.Code != string(intents.NotFound) || none.Error.Param != "model" {
		t.Errorf("%d %+v", resp.StatusCode, none)
	}
}

// TestUnknownBelowV1: an unknown path below /v1, and an unsupported method of a known one, are
// refused in a form that clients of OpenAI's API read, as well as in our own.
func TestUnknownBelowV1(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1", 404},
		{"GET", "/v1/nothing", 404},
		{"POST", "/v1/embeddings", 404},
		{"POST", "/v1/chat/completions/c1/cancel", 404},
		{"DELETE", "/v1/models/planner", 405},
		{"PUT", "/v1/me", 405},
		{"GET", "/v1/chat/completions", 405},
		{"DELETE", "/v1/responses", 405},
		{"PUT", "/v1/models", 405},
	} {
		var got struct {
			Error struct{ Message, Type, Code string }
			problem.Problem
		}
		resp := w.call(c.method, c.path, "", bearer(), &got)
		if resp.StatusCode != c.status || got.Error.Code != string(intents.NotFound) || got.Error.Type != "invalid_request_error" || !strings.HasPrefix(got.Error.Message, "no such ") || got.Problem.Code != intents.NotFound || strings.Contains(got.Hint, "id") {
			t.Errorf("%s %s: %d %+v", c.method, c.path, resp.StatusCode, got)
		}
	}
	for _, path := range []string{"/v10", "/agent/nothing"} {
		var got map[string]any
		if resp := w.call("GET", path, "", bearer(), &got); resp.StatusCode != http.StatusNotFound || got["error"] != nil || got["code"] != string(intents.NotFound) {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// Requests for features that an answer would not have are refused before a plan is opened, in
// OpenAI's form.
func TestOpenAIRefusals(t *testing.T) {
	w := newWorld(t, nil)
	user := `"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		path, body string
		code       intents.Code
		param      any
	}{
		{"/v1/chat/completions", `{`, intents.SchemaInvalid, nil},
		{"/v1/chat/completions", `{"model":7,` + user + `}`, intents.SchemaInvalid, "model"},
		{"/v1/chat/completions", `{"model":"gpt-4",` + user + `}`, intents.NotFound, "model"},
		{"/v1/chat/completions", `{` + user + `}`, intents.NotFound, "model"},
		{"/v1/chat/completions", `{"model":"planner",` + user + `,"tools":[{"type":"function"}],"tool_choice":"required"}`, intents.SchemaInvalid, "tool_choice"},
		{"/v1/chat/completions", `{"model":"planner",` + user + `,"functions":[{"name":"f"}],"function_call":{"name":"f"}}`, intents.SchemaInvalid, "function_call"},
		{"/v1/chat/completions", `{"model":"planner",` + user + `,"n":2}`, intents.SchemaInvalid, "n"},
		{"/v1/chat/completions", `{"model":"planner",` + user + `,"response_format":{"type":"grammar"}}`, intents.SchemaInvalid, "response_format"},
		{"/v1/chat/completions", `{"model":"planner",` + user + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"pattern":"("}}}}`, intents.SchemaInvalid, "response_format"},
		{"/v1/chat/completions", `{"model":"planner",` + user + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"title":"` + strings.Repeat("x", maxAnswerSchema) + `"}}}}`, intents.SchemaInvalid, "response_format"},
		{"/v1/chat/completions", `{"model":"planner","messages":[]}`, intents.SchemaInvalid, "messages"},
		{"/v1/chat/completions", `{"model":"planner","messages":[{"role":"system","content":"x"}]}`, intents.SchemaInvalid, "messages"},
		{"/v1/chat/completions", `{"model":"planner","messages":[{"role":"user","content":""}]}`, intents.SchemaInvalid, "messages.0.content"},
		{"/v1/chat/completions", `{"model":"planner","messages":[{"role":"user","content":7}]}`, intents.SchemaInvalid, "messages.0.content"},
		{"/v1/responses", `{"model":"planner"}`, intents.SchemaInvalid, "input"},
		{"/v1/responses", `{"model":"planner","input":""}`, intents.SchemaInvalid, "input"},
		{"/v1/responses", `{"model":"gpt-4","input":"x"}`, intents.NotFound, "model"},
		{"/v1/responses", `{"model":"planner","input":[{"type":"function_call_output"}]}`, intents.SchemaInvalid, "input"},
		{"/v1/responses", `{"model":"planner","input":"x","previous_response_id":"r1"}`, intents.SchemaInvalid, "previous_response_id"},
		{"/v1/responses", `{"model":"planner","input":"x","conversation":"c1"}`, intents.SchemaInvalid, "conversation"},
		{"/v1/responses", `{"model":"planner","input":"x","background":true}`, intents.SchemaInvalid, "background"},
		{"/v1/responses", `{"model":"planner","input":"x","text":{"format":{"type":"json_schema"}}}`, intents.SchemaInvalid, "text.format"},
		{"/v1/responses", `{"model":"planner","input":"x","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}}`, intents.SchemaInvalid, "tool_choice"},
	} {
		w.refusedOpenAI("POST", c.path, c.body, bearer(), c.code, c.param)
	}
	if n := len(w.submits("plan.open")); n != 0 {
		t.Errorf("%d plans", n)
	}
	header := bearer()
	header["Content-Type"] = []string{"text/plain"}
	if resp := w.call("POST", "/v1/responses", "{}", header, nil); resp.StatusCode != http.StatusUnsupportedMediaType || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	// The bearer of other routes is no API key.
	w.refused("POST", "/agent/run", "{}", bearer(), intents.Unauthorized, "")
}

// A client that disconnects at any event leaves its plan running, and no other is opened.
func TestOpenAIClientLeaves(t *testing.T) {
	more := make(chan struct{})
	w := newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		for range 4 {
			say(bus.FrameToken, bus.ContentData{Text: "a"})
		}
		<-more
		say(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: "complete"})
	})
	t.Cleanup(func() { close(more) })
	for n := range 5 {
		resp := w.do(t.Context(), "POST", "/v1/chat/completions", sampleRequest+`,"stream":true}`, bearer())
		r := bufio.NewReader(resp.Body)
		for range n {
			if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
				t.Fatalf("%q, %v", line, err)
			}
			_, _ = r.ReadString('\n')
		}
		_ = resp.Body.Close()
		if got := len(w.submits("plan.open")); got != n+1 {
			t.Errorf("%d plans after %d requests", got, n+1)
		}
	}
	if n := len(w.submits("cancel")); n != 0 {
		t.Errorf("%d plans were cancelled", n)
	}
}

// A conversation is a turn in the session of its path; the last message of the user counts.
func TestChat(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	body := `{"messages":[{"id":"m1","role":"user","content":"Hello"},{"id":"m2","role":"assistant","content":"Hi"},{"id":"m3","role":"user","content":"` + question + `"}]}`
	resp := w.do(t.Context(), "POST", "/chat/s9", body, http.Header{"X-Agent-Schema-Name": {"planner"}})
	events := allEvents(t, resp.Body)
	_ = resp.Body.Close()
	if d := cmp.Diff([]string{"status", "status", "token", "answer", "done"}, kinds(events)); d != "" {
		t.Error(d)
	}
	open := w.submits("plan.open")[0]
	if plan, _ := w.plan(open.Context().PlanID); plan.Task != question || open.Principal().Session != "s9" {
		t.Errorf("task %q in session %q", plan.Task, open.Principal().Session)
	}
	var args catalog.PlanOpen
	if err := json.Unmarshal(open.Args(), &args); err != nil || args.Turn != nil || args.Request == nil || args.Request.Kind != catalog.RequestKey {
		t.Errorf("plan.open %+v, %v: the id of the message says which request it is, and the session has the others", args, err)
	}
	w.set(func(c *core) { c.agents = []string{"general", "pirate"} })
	for runAgent, asked := range map[string]string{"": "general", "pirate": "pirate"} { // no header
		w.gateway.cfg.RunAgent = runAgent
		resp := w.do(t.Context(), "POST", "/chat/s8", strings.ReplaceAll(body, `"m3"`, `"`+asked+`"`), nil)
		_ = allEvents(t, resp.Body)
		_ = resp.Body.Close()
		var args catalog.PlanOpen
		if all := w.submits("plan.open"); json.Unmarshal(all[len(all)-1].Args(), &args) != nil || args.Agent != asked {
			t.Errorf("run_agent %q: %q is asked, not %s", runAgent, args.Agent, asked)
		}
	}
	w.refused("POST", "/chat/s9", `{"messages":[{"role":"assistant","content":"x"}]}`, nil, intents.SchemaInvalid, "/messages")
	w.refused("POST", "/chat/s9", body, http.Header{"X-Agent-Schema-Name": {"nobody"}}, intents.NotFound, "")
	w.refused("POST", "/chat/s9", body, http.Header{"X-Session-Id": {"s8"}}, intents.SchemaInvalid, "/session_id")
	w.refused("POST", "/chat/a+b", body, nil, intents.SchemaInvalid, "/session_id")
}
