package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
)

// A server that speaks the chat completions API and thinks with the offline
// model, so that a turn with the real client must give the offline answer. It
// misbehaves where it is told to.

type completionRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	ResponseFormat struct {
		JSONSchema struct {
			Name   model.Purpose  `json:"name"`
			Strict bool           `json:"strict"`
			Schema map[string]any `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Stream bool `json:"stream"`
}

// chaos is what goes wrong with one request.
type chaos string

const (
	calm        chaos = ""
	rateLimited chaos = "429"
	malformed   chaos = "malformed JSON"
	cutStream   chaos = "a cut stream"
	wrongShape  chaos = "an answer that breaks its schema"
)

type completions struct {
	t     *testing.T
	url   string
	chaos func(n int, p model.Purpose) chaos

	mu      sync.Mutex // guards the rest
	n       int
	done    map[chaos]int
	thought map[model.Purpose]bool
}

func serveCompletions(t *testing.T, when func(n int, p model.Purpose) chaos) *completions {
	t.Helper()
	c := &completions{t: t, chaos: when, done: map[chaos]int{}, thought: map[model.Purpose]bool{}}
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
	if f := req.ResponseFormat.JSONSchema; len(req.Messages) != 2 || !f.Strict || !req.Stream || req.Model != "mock" {
		c.t.Errorf("request %+v", req)
	}
	p := req.ResponseFormat.JSONSchema.Name
	c.mu.Lock()
	c.n++
	wrong := c.chaos(c.n, p)
	c.done[wrong]++
	c.thought[p] = true
	c.mu.Unlock()
	if wrong == rateLimited {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`)
		return
	}
	reply, err := offline.Model{}.Complete(r.Context(), model.Request{Purpose: p, Input: json.RawMessage(req.Messages[1].Content), Schema: model.OutputSchema(p)})
	if err != nil {
		c.t.Errorf("%s: %v", p, err)
		http.Error(w, "{}", http.StatusInternalServerError)
		return
	}
	text := c.strict(reply.Output, req.ResponseFormat.JSONSchema.Schema)
	switch wrong {
	case malformed:
		text = text[:len(text)/2]
	case wrongShape:
		text = `{"unasked": true}`
	default:
	}
	c.stream(w, text, wrong == cutStream)
}

// strict gives an answer the form that the strict schema of the request asks
// for: every member is there, lists are no null, and an object without declared
// members travels as a text.
func (c *completions) strict(out json.RawMessage, schema map[string]any) string {
	var v any
	if err := json.Unmarshal(out, &v); err != nil {
		c.t.Error(err)
	}
	text, err := json.Marshal(conform(v, schema))
	if err != nil {
		c.t.Error(err)
	}
	return string(text)
}

func conform(v any, schema map[string]any) any {
	switch schema["type"] {
	case "object":
		in, _ := v.(map[string]any)
		out := map[string]any{}
		for name, member := range schema["properties"].(map[string]any) {
			out[name] = conform(in[name], member.(map[string]any))
		}
		return out
	case "array":
		out := []any{}
		list, _ := v.([]any)
		for _, item := range list {
			out = append(out, conform(item, schema["items"].(map[string]any)))
		}
		return out
	case "string":
		if s, ok := v.(string); ok {
			return s
		}
		text, _ := json.Marshal(v) // decoded JSON always marshals
		if v == nil {
			return ""
		}
		return string(text)
	case "integer", "number":
		if v == nil {
			return 0
		}
	}
	return v
}

// stream sends an answer in pieces; a cut one ends in the middle of an event.
func (c *completions) stream(w http.ResponseWriter, text string, cut bool) {
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
	for piece := range strings.SplitAfterSeq(text, " ") {
		if cut && len(piece) < len(text) {
			fmt.Fprint(w, `data: {"id":"c","choices":[{"index":0,"del`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		chunk(map[string]string{"content": piece}, nil)
	}
	chunk(map[string]string{}, "stop")
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"mock","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`+"\n\ndata: [DONE]\n\n")
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
	for _, tt := range []struct {
		name  string
		chaos map[int]chaos // by number of the request
	}{
		{"calm", nil},
		{"chaos", map[int]chaos{1: rateLimited, 4: malformed, 7: cutStream, 9: wrongShape}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serveCompletions(t, func(n int, _ model.Purpose) chaos { return tt.chaos[n] })
			s := start(t, setup{Skills: []string{serveShop(t).url}, Model: c.model()})
			for _, q := range questions() {
				if q.task != "How many orders per outlet?" && q.task != "How many orders does the outlet Mitte have?" {
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
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, wrong := range tt.chaos {
				if c.done[wrong] != 1 {
					t.Errorf("%s happened %d times among %d requests", wrong, c.done[wrong], c.n)
				}
			}
			for _, p := range []model.Purpose{model.SelectSkills, model.WritePlan, model.ChooseAction, model.WriteScript, model.Compose} {
				if !c.thought[p] {
					t.Errorf("nobody asked for %s", p)
				}
			}
		})
	}
}
