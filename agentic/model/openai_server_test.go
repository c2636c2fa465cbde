package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// completionRequest is the body of a chat completion as the real API accepts it; the server
// refuses other members.
type completionRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role       string     `json:"role"`
		Content    *string    `json:"content"`
		ToolCalls  []wireCall `json:"tool_calls"`
		ToolCallID string     `json:"tool_call_id"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice     string `json:"tool_choice"`
	ResponseFormat *struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Name   string         `json:"name"`
			Strict bool           `json:"strict"`
			Schema map[string]any `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Stream        bool `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temperature *float64 `json:"temperature"`
	Stop        []string `json:"stop"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// reply answers one request on the server.
type reply func(w http.ResponseWriter, r *http.Request)

// mock is a chat completions server: it checks every request as the real API
// does (shape, tools, calls and their answers, headers) and answers with the next reply.
type mock struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	replies []reply
	got     []completionRequest
	auth    []string
}

func newMock(t *testing.T, replies ...reply) *mock {
	t.Helper()
	m := &mock{t: t, replies: replies}
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	m.url = srv.URL + "/v1"
	return m
}

var (
	sentHeaders = []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "User-Agent"}
	wireNames   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

func (m *mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	if len(m.got) >= len(m.replies) {
		m.mu.Unlock()
		m.t.Error("a request too many")
		http.Error(w, "{}", http.StatusTeapot)
		return
	}
	next := m.replies[len(m.got)]
	m.got = append(m.got, m.check(r))
	m.auth = append(m.auth, r.Header.Get("Authorization"))
	m.mu.Unlock()
	next(w, r)
}

func (m *mock) check(r *http.Request) completionRequest {
	if r.Method != http.MethodPost || r.URL.String() != "/v1/chat/completions" {
		m.t.Errorf("%s %s", r.Method, r.URL)
	}
	for name := range r.Header {
		if !slices.Contains(sentHeaders, name) {
			m.t.Errorf("unexpected header %s: %s", name, r.Header.Get(name))
		}
	}
	if h := r.Header; h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "writ" {
		m.t.Errorf("headers %v", h)
	}
	var req completionRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil {
		m.t.Errorf("body: %v", err)
	}
	if f := req.ResponseFormat; f != nil {
		if f.Type != "json_schema" || !f.JSONSchema.Strict || !wireNames.MatchString(f.JSONSchema.Name) {
			m.t.Errorf("response_format %+v", f)
		}
		checkStrict(m.t, "", f.JSONSchema.Schema)
	}
	if req.Stream != (req.StreamOptions != nil && req.StreamOptions.IncludeUsage) {
		m.t.Error("not streamed with usage")
	}
	m.checkTools(req)
	m.checkMessages(req)
	return req
}

func (m *mock) checkTools(req completionRequest) {
	if (len(req.Tools) > 0) != (req.ToolChoice == "auto" || req.ToolChoice == "required" || req.ToolChoice == "none") || len(req.Tools) > 128 {
		m.t.Errorf("%d tools with the choice %q", len(req.Tools), req.ToolChoice)
	}
	for _, t := range req.Tools {
		f := t.Function
		if t.Type != "function" || !wireNames.MatchString(f.Name) || len(f.Description) > 1024 {
			m.t.Errorf("tool %+v", t)
		}
		var top map[string]any
		if err := json.Unmarshal(f.Parameters, &top); err != nil || top["type"] != "object" || top["properties"] == nil {
			m.t.Errorf("parameters of %s: %s", f.Name, f.Parameters)
		}
		for _, name := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
			if _, there := top[name]; there {
				m.t.Errorf("parameters of %s have %s at the top", f.Name, name)
			}
		}
	}
}

// checkMessages fails if the real API would refuse a conversation: every call must be answered at
// once.
func (m *mock) checkMessages(req completionRequest) {
	var open []string
	for i, msg := range req.Messages {
		if msg.Role != "tool" && len(open) > 0 {
			m.t.Errorf("message %d comes before the answers to %v", i, open)
		}
		switch msg.Role {
		case "system", "user":
			if msg.Content == nil {
				m.t.Errorf("message %d has no content", i)
			}
		case "assistant":
			if msg.Content == nil && len(msg.ToolCalls) == 0 {
				m.t.Errorf("message %d says nothing", i)
			}
			for _, c := range msg.ToolCalls {
				if c.Type != "function" || !wireNames.MatchString(c.Function.Name) || c.ID == "" || len(c.ID) > 40 || !strings.HasPrefix(c.Function.Arguments, "{") || !json.Valid([]byte(c.Function.Arguments)) {
					m.t.Errorf("call %+v", c)
				}
				open = append(open, c.ID)
			}
		case "tool":
			at := slices.Index(open, msg.ToolCallID)
			if at < 0 || msg.Content == nil {
				m.t.Errorf("message %d answers %q", i, msg.ToolCallID)
				continue
			}
			open = slices.Delete(open, at, at+1)
		default:
			m.t.Errorf("message %d is of %q", i, msg.Role)
		}
	}
	if len(open) > 0 || len(req.Messages) == 0 {
		m.t.Errorf("%d messages, no answers to %v", len(req.Messages), open)
	}
}

// strictKeywords are the keywords of the strict part of JSON Schema that we use.
var strictKeywords = []string{
	"type", "properties", "required", "additionalProperties", "items", "enum", "description",
	"minimum", "maximum", "minItems", "maxItems",
}

// checkStrict fails if the real API would refuse a strict schema.
func checkStrict(t *testing.T, at string, s map[string]any) {
	t.Helper()
	for k := range s {
		if !slices.Contains(strictKeywords, k) {
			t.Errorf("%s: keyword %s is not supported", at, k)
		}
	}
	typ, _ := s["type"].(string)
	if !slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean"}, typ) {
		t.Errorf("%s: type %v", at, s["type"])
	}
	if typ == "object" {
		members, _ := s["properties"].(map[string]any)
		var required []string
		list, _ := s["required"].([]any)
		for _, r := range list {
			required = append(required, r.(string))
		}
		slices.Sort(required)
		if s["additionalProperties"] != false || len(members) == 0 || !slices.Equal(required, slices.Sorted(maps.Keys(members))) {
			t.Errorf("%s: an object must list its members, all required and no others", at)
		}
		for name, m := range members {
			checkStrict(t, at+"/"+name, m.(map[string]any))
		}
	}
	if typ == "array" {
		checkStrict(t, at+"/*", s["items"].(map[string]any))
	}
}

// event is one chunk of a stream as the API sends it.
func event(w http.ResponseWriter, choices, usage string) {
	fmt.Fprintf(w, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s],"usage":%s}`+"\n\n", choices, usage)
	w.(http.Flusher).Flush()
}

func delta(w http.ResponseWriter, field, text string) {
	q, _ := json.Marshal(text)
	event(w, fmt.Sprintf(`{"index":0,"delta":{"%s":%s},"finish_reason":null}`, field, q), "null")
}

// begin starts a stream and sends text in pieces, cut only between runes, as the API does.
func begin(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	event(w, `{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}`, "null")
	for piece := range strings.SplitAfterSeq(text, ",") {
		delta(w, "content", piece)
	}
}

// called sends pieces of calls, each as the JSON of one delta's tool_calls.
func called(w http.ResponseWriter, pieces ...string) {
	for _, p := range pieces {
		event(w, fmt.Sprintf(`{"index":0,"delta":{"tool_calls":%s},"finish_reason":null}`, p), "null")
	}
}

func end(w http.ResponseWriter, finish string) {
	event(w, fmt.Sprintf(`{"index":0,"delta":{},"finish_reason":%q}`, finish), "null")
	event(w, "", `{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}`)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func says(text string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		begin(w, text)
		end(w, "stop")
	}
}

// calls answers with calls of tools, in these pieces.
func calls(finish string, pieces ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		begin(w, "")
		called(w, pieces...)
		end(w, finish)
	}
}

// completes answers without a stream.
func completes(message, finish string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":%q}],
			"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`, message, finish)
	}
}

func ends(finish string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		begin(w, "well, ")
		end(w, finish)
	}
}

// fails answers with an API error; its message quotes prompt and key.
func fails(status int, code string, header ...string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		q, _ := json.Marshal(code)
		fmt.Fprintf(w, `{"error":{"message":"prompt secret-prompt, key %s","type":"some_error","param":null,"code":%s}}`, r.Header.Get("Authorization"), q)
	}
}
