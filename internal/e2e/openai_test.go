package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/state/agents"
)

// A server that speaks the chat completions API and replies what the offline model
// does, so that a turn with the real client must give the offline answer. It
// misbehaves where it is told to.

// completionRequest is what a chat completions server reads.
type completionRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role       string `json:"role"`
		Content    string `json:"content"`
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice any  `json:"tool_choice"`
	Stream     bool `json:"stream"`
}

// request is what was asked of a model; the agent stands in the context.
func (r completionRequest) request() model.Request {
	system, context, _ := strings.Cut(r.Messages[0].Content, "\n\n[Context]\n")
	req := model.Request{System: system, Messages: []model.Message{{Role: model.RoleSystem, Text: "[Context]\n" + context}}}
	for _, m := range r.Messages[1:] {
		out := model.Message{Role: model.Role(m.Role), Text: m.Content, CallID: m.ToolCallID}
		if note, text, ok := strings.Cut(m.Content, "\n\n"); ok && strings.HasPrefix(note, "Date: ") {
			out.Note, out.Text = note, text
		}
		for _, c := range m.ToolCalls {
			out.Calls = append(out.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		req.Messages = append(req.Messages, out)
	}
	for _, t := range r.Tools {
		req.Tools = append(req.Tools, model.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	if r.ToolChoice == "required" {
		req.Choice = model.ChoiceRequired
	}
	_, agent, _ := strings.Cut(req.Messages[0].Text, "\nAgent: ")
	req.Agent, _, _ = strings.Cut(agent, "\n")
	return req
}

// chaos is what goes wrong with one request.
type chaos string

const (
	calm        chaos = ""
	rateLimited chaos = "429"
	malformed   chaos = "malformed JSON"
	cutStream   chaos = "a cut stream"
	wrongShape  chaos = "a call that breaks its schema"
)

type completions struct {
	t     *testing.T
	url   string
	chaos func(n int) chaos
	mind  model.Model // nil: the offline one

	mu     sync.Mutex // guards the rest
	n      int
	done   map[chaos]int
	agents map[string]bool // that have asked
	broken map[string]bool // ids of calls that went wrong
}

func serveCompletions(t *testing.T, when func(n int) chaos) *completions {
	t.Helper()
	c := &completions{t: t, chaos: when, done: map[chaos]int{}, agents: map[string]bool{}, broken: map[string]bool{}}
	srv := httptest.NewServer(c)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	c.url = srv.URL + "/v1"
	return c
}

func (c *completions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req completionRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer sk-test" {
		c.t.Errorf("%s %s with %q: %v", r.Method, r.URL.Path, r.Header.Get("Authorization"), err)
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	asked := c.unbroken(req.request())
	if !req.Stream || req.Model != "mock" || asked.Agent == "" {
		c.t.Errorf("request %+v", req)
	}
	c.mu.Lock()
	c.n++
	wrong := c.chaos(c.n)
	c.done[wrong]++
	c.agents[asked.Agent] = true
	c.mu.Unlock()
	if wrong == rateLimited {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`)
		return
	}
	mind := c.mind
	if mind == nil {
		mind = offline.Model{}
	}
	reply, err := mind.Respond(r.Context(), asked, nil)
	if err != nil {
		c.t.Errorf("%s: %v", asked.Agent, err)
		http.Error(w, "{}", http.StatusInternalServerError)
		return
	}
	for i := range reply.Calls {
		call := &reply.Calls[i]
		switch wrong {
		case malformed:
			call.Arguments = call.Arguments[:len(call.Arguments)/2]
		case wrongShape:
			call.Arguments = `{"unasked": true}`
		default:
			continue
		}
		c.mu.Lock()
		c.broken[call.ID] = true
		c.mu.Unlock()
	}
	c.stream(w, reply, wrong == cutStream)
}

// unbroken is a request without the calls that went wrong: the offline model does not
// correct what it has not written.
func (c *completions) unbroken(req model.Request) model.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	req.Messages = slices.DeleteFunc(req.Messages, func(m model.Message) bool {
		return c.broken[m.CallID] || len(m.Calls) > 0 && c.broken[m.Calls[0].ID]
	})
	return req
}

// stream sends a reply in pieces; a cut one ends in the middle of an event.
func (c *completions) stream(w http.ResponseWriter, reply *model.Response, cut bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta any, finish any) {
		raw, err := json.Marshal(map[string]any{
			"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
		if err != nil {
			c.t.Error(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", raw)
		_ = http.NewResponseController(w).Flush()
	}
	for piece := range strings.SplitAfterSeq(reply.Text, " ") {
		chunk(map[string]string{"content": piece}, nil)
	}
	finish := "stop"
	for i, call := range reply.Calls {
		finish = "tool_calls"
		function := func(f map[string]string, more map[string]any) map[string]any {
			more["index"], more["function"] = i, f
			return map[string]any{"tool_calls": []any{more}}
		}
		chunk(function(map[string]string{"name": call.Name, "arguments": ""}, map[string]any{"id": call.ID, "type": "function"}), nil)
		for piece := range strings.SplitAfterSeq(call.Arguments, ",") {
			chunk(function(map[string]string{"arguments": piece}, map[string]any{}), nil)
		}
	}
	const usage = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"mock","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}` + "\n\n"
	if cut { // some servers count as they go
		fmt.Fprint(w, usage+`data: {"id":"c","choices":[{"index":0,"del`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	chunk(map[string]string{}, finish)
	fmt.Fprint(w, usage+"data: [DONE]\n\n")
}

// model is the real client in front of such a server.
func (c *completions) model() model.Model {
	m, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: c.url, APIKey: "sk-test", Model: "mock"})
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// TestRemoteModel: whole turns over the wire, with and without what goes wrong
// on it, have the answers of the offline model.
func TestRemoteModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		chaos map[int]chaos // by number of the request
	}{
		{"calm", nil},
		{"chaos", map[int]chaos{1: rateLimited, 4: malformed, 7: cutStream, 9: wrongShape}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serveCompletions(t, func(n int) chaos { return tt.chaos[n] })
			s := start(t, setup{Skills: []string{serveShop(t).url}, Model: c.model()})
			in, out := 0, 0
			for _, q := range questions() {
				if q.task != "How many orders are not paid?" && q.task != "How many outlets are open?" {
					continue
				}
				got := s.ask(s.as("ana"), q.task)
				if got.Status != "complete" {
					t.Fatalf("%s: %s: %s", q.task, got.Status, got.Reason)
				}
				if planned(got.Plan) != q.skills {
					t.Errorf("%s: skills %q, want %q", q.task, planned(got.Plan), q.skills)
				}
				sameJSON(t, q.want, got.Data)
				checkHistory(t, got.Plan, 0)
				for _, u := range got.Plan.Usage {
					in, out = in+u.InputTokens, out+u.OutputTokens
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, wrong := range tt.chaos {
				if c.done[wrong] != 1 {
					t.Errorf("%s happened %d times among %d requests", wrong, c.done[wrong], c.n)
				}
			}
			// What the record has is what the server counted.
			if told := c.n - c.done[rateLimited]; in != 11*told || out != 7*told {
				t.Errorf("%d and %d tokens are recorded of %d replies", in, out, told)
			}
			for _, name := range []string{agents.Planner, agents.Executor, agents.Composer} {
				if !c.agents[name] {
					t.Errorf("the %s asked nothing", name)
				}
			}
		})
	}
}
