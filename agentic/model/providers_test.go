package model

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

//go:generate go test . -run TestProviders -update

var updateTable = flag.Bool("update", false, "write the table of docs/models.md anew")

// body is a request as a server reads it.
type body map[string]any

func (b body) has(name string) bool { _, there := b[name]; return there }

func (b body) messages() (all []body) {
	list, _ := b["messages"].([]any)
	for _, m := range list {
		all = append(all, m.(map[string]any))
	}
	return all
}

func (b body) calls() (all []body) {
	list, _ := b["tool_calls"].([]any)
	for _, c := range list {
		all = append(all, c.(map[string]any))
	}
	return all
}

// anyCall reports whether a call in the conversation is so.
func (b body) anyCall(is func(c body) bool) bool {
	return slices.ContainsFunc(b.messages(), func(m body) bool { return slices.ContainsFunc(m.calls(), is) })
}

// anySchema reports whether a schema at some depth of a tool is so.
func (b body) anySchema(is func(s map[string]any, top bool) bool) bool {
	var within func(v any, top bool) bool
	within = func(v any, top bool) bool {
		s, object := v.(map[string]any)
		if !object {
			return false
		}
		if is(s, top) {
			return true
		}
		for name, sub := range s {
			switch sub := sub.(type) {
			case map[string]any:
				if name == "properties" || name == "$defs" {
					for _, member := range sub {
						if within(member, false) {
							return true
						}
					}
				} else if within(sub, false) {
					return true
				}
			case []any:
				if slices.ContainsFunc(sub, func(v any) bool { return within(v, false) }) {
					return true
				}
			}
		}
		return false
	}
	tools, _ := b["tools"].([]any)
	return slices.ContainsFunc(tools, func(t any) bool {
		f := t.(map[string]any)["function"].(map[string]any)
		return within(f["parameters"], true)
	})
}

// refusal is something that a provider refuses.
type refusal struct {
	what   string // of the table
	source string // where the provider or a user of it says so
	finds  func(b body) bool
	status int
	text   string // of the answer
}

// provider is one profile: what it refuses, and in which shapes it answers.
type provider struct {
	name     string
	refusals []refusal
	id       string // of a call; # is its number
	thinks   string // members beside the content of each reply
	signs    string // members of each call
	stop     string // the finish reason of a text
	called   string // of calls
	cut      string // of a reply at the limit
	parts    bool   // content is a list of parts
	usage    string
	busy     func(w http.ResponseWriter) // an answer that names the time to wait, 37 s
	leak     string                      // how its models write a call as text
	slow     time.Duration               // before each byte
}

func unsupported(param string) string {
	return fmt.Sprintf(`{"error":{"message":"Unsupported parameter: '%s' is not supported with this model.","type":"invalid_request_error","param":"%[1]s","code":"unsupported_parameter"}}`, param)
}

func extra(loc ...string) string {
	where, _ := json.Marshal(append([]string{"body"}, loc...))
	return `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":` + string(where) + `,"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}`
}

func google(message string) string {
	q, _ := json.Marshal(message)
	return `[{"error":{"code":400,"message":` + string(q) + `,"status":"INVALID_ARGUMENT"}}]`
}

func hasParam(name string) func(body) bool { return func(b body) bool { return b.has(name) } }

func idBeyond(pattern string) func(body) bool {
	valid := regexp.MustCompile(pattern)
	return func(b body) bool {
		return b.anyCall(func(c body) bool { return !valid.MatchString(c["id"].(string)) })
	}
}

// geminiKeywords are those of Gemini's Schema.
var geminiKeywords = []string{"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum", "maximum"}

const (
	openaiUsage = `"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":60}}`
	longID      = refusalID + "40"
	refusalID   = "ids of calls beyond "
)

var openaiID = refusal{
	longID, "https://github.com/camel-ai/camel/issues/2215", idBeyond(`^.{1,40}$`), 400,
	`{"error":{"message":"Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 51 instead.","type":"invalid_request_error","param":"messages[2].tool_calls[0].id","code":"string_above_max_length"}}`,
}

func busyHeader(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "37")
	w.WriteHeader(429)
	fmt.Fprint(w, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`)
}

var providers = []provider{
	{
		name: "OpenAI chat", id: "call_PTLP8xhu3uwZk4l3nlnrr#", stop: "stop", called: "tool_calls", cut: "length", usage: openaiUsage,
		busy: func(w http.ResponseWriter) {
			w.WriteHeader(429)
			fmt.Fprint(w, `{"error":{"message":"Rate limit reached for gpt-4.1 on tokens per min (TPM): Limit 30000, Used 28039. Please try again in 37s.","type":"tokens","code":"rate_limit_exceeded"}}`)
		},
		leak: "<tool_call>\n{\"name\":\"look\",\"arguments\":{\"n\":1}}\n</tool_call>",
		refusals: []refusal{openaiID, {
			"alternatives at the top of a schema", "https://github.com/langchain-ai/langchainjs/issues/9804",
			func(b body) bool {
				return b.anySchema(func(s map[string]any, top bool) bool {
					return top && (s["oneOf"] != nil || s["anyOf"] != nil || s["allOf"] != nil)
				})
			}, 400,
			`{"error":{"message":"Invalid schema for function 'choose': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}`,
		}, {
			"`allOf` in a schema", "https://github.com/makenotion/notion-mcp-server/issues/102",
			func(b body) bool {
				return b.anySchema(func(s map[string]any, _ bool) bool { return s["allOf"] != nil })
			}, 400,
			`{"error":{"message":"Invalid schema for function 'choose': In context=('properties', 'data'), 'allOf' is not permitted.","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}`,
		}},
	},
	{
		name: "OpenAI reasoning", id: "call_PTLP8xhu3uwZk4l3nlnrr#", stop: "stop", called: "tool_calls", cut: "length", usage: openaiUsage, busy: busyHeader,
		leak: `{"name":"look","arguments":{"n":1}}`,
		refusals: []refusal{
			openaiID,
			{
				"`max_tokens`", "https://github.com/griptape-ai/ComfyUI-Griptape/issues/312", hasParam("max_tokens"), 400,
				`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`,
			},
			{
				"`temperature`", "https://github.com/decolua/9router/issues/560", func(b body) bool { return b.has("temperature") && b["temperature"] != 1.0 }, 400,
				`{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`,
			},
			{"`stop`", "https://github.com/huggingface/smolagents/issues/1671", hasParam("stop"), 400, unsupported("stop")},
			{"`parallel_tool_calls`", "https://github.com/tensorzero/tensorzero/issues/2805", hasParam("parallel_tool_calls"), 400, unsupported("parallel_tool_calls")},
			{
				"tools unless `reasoning_effort` is `none`", "https://github.com/BerriAI/litellm/pull/34569", func(b body) bool { return b.has("tools") && b["reasoning_effort"] != "none" }, 400,
				`{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort","code":null}}`,
			},
		},
	},
	{
		name: "Gemini", id: "function-call-1234567890123456789#", signs: `"extra_content":{"google":{"thought_signature":"SIG#"}},`, stop: "STOP", called: "tool_calls", cut: "MAX_TOKENS",
		usage: `"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107}`,
		busy: func(w http.ResponseWriter) {
			w.WriteHeader(429)
			fmt.Fprint(w, `[{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}]`)
		},
		leak: "```json\n[{\"name\":\"look\",\"arguments\":{\"n\":1}}]\n```",
		refusals: []refusal{
			{"a call without its `thought_signature`", "https://github.com/manthanabc/paws/issues/103", func(b body) bool {
				all := b.messages()
				for i, m := range all { // of the current turn
					c := m.calls()
					if len(c) > 0 && c[0]["extra_content"] == nil && !slices.ContainsFunc(all[i:], func(m body) bool { return m["role"] == "user" }) {
						return true
					}
				}
				return false
			}, 400, google("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call `default_api:look` , position 2.")},
			{"`parallel_tool_calls`", "https://github.com/jackmpcollins/magentic/pull/382", hasParam("parallel_tool_calls"), 400, google(`Invalid JSON payload received. Unknown name "parallel_tool_calls": Cannot find field.`)},
			{"keywords of schemas, such as `const`, `$ref`", "https://github.com/zed-industries/zed/issues/44875", func(b body) bool {
				return b.anySchema(func(s map[string]any, _ bool) bool {
					for name := range s {
						if !slices.Contains(geminiKeywords, name) {
							return true
						}
					}
					return false
				})
			}, 400, google(`Invalid JSON payload received. Unknown name "const" at 'tools[0].function_declarations[1].parameters.properties[0].value.any_of[0]': Cannot find field.`)},
			{"lists of types", "https://github.com/zed-industries/zed/issues/53919", func(b body) bool {
				return b.anySchema(func(s map[string]any, _ bool) bool { _, list := s["type"].([]any); return list })
			}, 400, google(`Invalid JSON payload received. Unknown name "type" at 'tools[0].function_declarations[6].parameters.properties[4].value': Proto field is not repeating, cannot start list.`)},
			{"objects without members", "https://github.com/agno-agi/agno/issues/2112", func(b body) bool {
				return b.anySchema(func(s map[string]any, _ bool) bool {
					members, there := s["properties"].(map[string]any)
					return there && len(members) == 0
				})
			}, 400, google("* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties: should be non-empty for OBJECT type\n")},
			{"`properties` beside other types", "https://github.com/anomalyco/opencode/issues/11889", func(b body) bool {
				return b.anySchema(func(s map[string]any, _ bool) bool {
					return (s["properties"] != nil || s["required"] != nil) && s["type"] != "object"
				})
			}, 400, google("* GenerateContentRequest.tools[0].function_declarations[80].parameters.properties[data].required: only allowed for OBJECT type")},
		},
	},
	{
		name: "DeepSeek thinking", id: "call_00_9nLfpIQ6VO1JCaEsJcU8WZ#", thinks: `"reasoning_content":"hm#",`, stop: "stop", called: "tool_calls", cut: "length", busy: busyHeader,
		usage: `"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40}`,
		leak:  "<tool_call>{\"name\":\"look\",\"arguments\":{\"n\":1}}</tool_call>",
		refusals: []refusal{
			{
				"`tool_choice: required`", "https://github.com/deepseek-ai/DeepSeek-V3/issues/1376", func(b body) bool { return b["tool_choice"] == "required" }, 400,
				`{"error":{"message":"Thinking mode does not support this tool_choice","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
			},
			{"calls without `reasoning_content`", "https://api-docs.deepseek.com/guides/thinking_mode", func(b body) bool {
				return slices.ContainsFunc(b.messages(), func(m body) bool { return len(m.calls()) > 0 && !m.has("reasoning_content") })
			}, 400, "{\"error\":{\"message\":\"The `reasoning_content` in the thinking mode must be passed back to the API.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"invalid_request_error\"}}"},
		},
	},
	{
		name: "Mistral", id: "VvvODy9m#", stop: "stop", called: "tool_calls", cut: "model_length", parts: true, busy: busyHeader,
		usage: `"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107}`,
		leak:  `[TOOL_CALLS][{"name":"look","arguments":{"n":1}}]`,
		refusals: []refusal{
			{
				refusalID + "nine letters or digits", "https://github.com/anomalyco/opencode/issues/1680", idBeyond(`^[A-Za-z0-9]{9}$`), 400,
				`{"object":"error","message":"Tool call id was call_0fypS1hVX but must be a-z, A-Z, 0-9, with a length of 9.","type":"invalid_function_call","param":null,"code":"3280"}`,
			},
			{"`user` after `tool`", "https://github.com/avante-corp/avante.nvim/issues/2562", func(b body) bool {
				all := b.messages()
				for i := 1; i < len(all); i++ {
					if all[i-1]["role"] == "tool" && all[i]["role"] != "tool" && all[i]["role"] != "assistant" {
						return true
					}
				}
				return false
			}, 400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`},
			{"`max_completion_tokens`", "https://github.com/editor-code-assistant/eca/issues/231", hasParam("max_completion_tokens"), 422, extra("max_completion_tokens")},
			{"`reasoning_content`", "https://github.com/charmbracelet/crush/issues/1590", func(b body) bool {
				return slices.ContainsFunc(b.messages(), func(m body) bool { return m.has("reasoning_content") })
			}, 422, extra("messages", "1", "assistant", "reasoning_content")},
			{"other unknown members", "https://github.com/BerriAI/litellm/issues/30882", func(b body) bool {
				return b.anyCall(func(c body) bool { return c.has("extra_content") })
			}, 422, extra("messages", "1", "assistant", "tool_calls", "0", "extra_content")},
		},
	},
	{
		name: "Anthropic", id: "toolu_01UsBRMJWT8xAssuztCGEZ#", stop: "end_turn", called: "tool_use", cut: "max_tokens", usage: openaiUsage, busy: busyHeader,
		leak: "<invoke name=\"look\">\n<parameter name=\"n\">1</parameter>\n</invoke>",
		refusals: []refusal{
			{"alternatives at the top of a schema", "https://github.com/anthropics/claude-code/issues/27337", func(b body) bool {
				return b.anySchema(func(s map[string]any, top bool) bool {
					return top && (s["oneOf"] != nil || s["anyOf"] != nil || s["allOf"] != nil)
				})
			}, 400, `{"error":{"code":"invalid_request_error","message":"tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level","type":"invalid_request_error","param":null}}`},
			{"empty texts", "https://github.com/anthropics/claude-code/issues/59812", func(b body) bool {
				return slices.ContainsFunc(b.messages(), func(m body) bool { text, is := m["content"].(string); return is && strings.TrimSpace(text) == "" })
			}, 400, `{"error":{"code":"invalid_request_error","message":"messages: text content blocks must be non-empty","type":"invalid_request_error","param":null}}`},
			{
				"`temperature`", "https://github.com/RooCodeInc/Roo-Code/issues/12162", hasParam("temperature"), 400,
				"{\"error\":{\"code\":\"invalid_request_error\",\"message\":\"`temperature` is deprecated for this model.\",\"type\":\"invalid_request_error\",\"param\":null}}",
			},
			{
				refusalID + "`[A-Za-z0-9_-]+`", "https://github.com/HKUDS/nanobot/pull/4356", idBeyond(`^[a-zA-Z0-9_-]+$`), 400,
				`{"error":{"code":"invalid_request_error","message":"messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'","type":"invalid_request_error","param":null}}`,
			},
		},
	},
	{
		name: "Ollama", id: "call_1234567#", stop: "stop", called: "stop", cut: "length", busy: busyHeader, usage: `"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107}`,
		thinks: `"reasoning":"hm#",`, leak: `{"name": "look", "parameters": {"n": 1}}`,
		refusals: []refusal{
			{"calls without content", "https://github.com/pydantic/pydantic-ai/issues/5206", func(b body) bool {
				return slices.ContainsFunc(b.messages(), func(m body) bool { return m["content"] == nil })
			}, 400, `{"error":{"message":"invalid message content type: <nil>","type":"invalid_request_error","param":null,"code":null}}`},
		},
	},
}

// answer is what the strict server's model says.
type answer struct {
	text, refusal, finish string
	calls                 []string // arguments of calls of look
	final                 string   // arguments of a call of choose
	dropsUsage            bool
	busy, hangs           bool // instead of all that
}

// strict is the server of a provider, without a network: it serves the client's transport.
type strict struct {
	t       *testing.T
	p       *provider
	mu      sync.Mutex
	answers []answer
	refused []string // what was refused
	last    body     // the last request that was not
	made    int      // calls
}

func (s *strict) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	out := &piped{header: http.Header{}, w: w, ready: make(chan struct{})}
	go func() {
		s.serve(out, req)
		out.WriteHeader(http.StatusOK)
		_ = w.Close() // never fails
	}()
	gone := req.Context().Done()
	go func() { // a client that leaves hears no more
		<-gone
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	select {
	case <-out.ready:
		return &http.Response{StatusCode: out.status, Header: out.header, Body: r, Request: req}, nil
	case <-gone:
		return nil, req.Context().Err()
	}
}

// piped is the response of a strict server.
type piped struct {
	header http.Header
	status int
	w      *io.PipeWriter
	once   sync.Once
	ready  chan struct{}
}

func (p *piped) Header() http.Header { return p.header }

func (p *piped) WriteHeader(status int) {
	p.once.Do(func() { p.status = status; close(p.ready) })
}

func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.w.Write(b)
}

func (s *strict) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := io.ReadAll(req.Body)
	var b body
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		s.t.Errorf("body: %v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	for _, r := range s.p.refusals {
		if r.finds(b) {
			s.refused = append(s.refused, r.what)
			w.WriteHeader(r.status)
			fmt.Fprint(w, r.text)
			return
		}
	}
	s.last = b
	if len(s.answers) == 0 {
		s.t.Errorf("a request too many: %s", raw)
		return
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	switch {
	case a.busy:
		s.p.busy(w)
	case a.hangs:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"well, "},"finish_reason":null}]}`+"\n\n")
		<-req.Context().Done()
	default:
		if b["stream"] != true {
			s.whole(w, a)
			return
		}
		s.stream(w, a)
	}
}

// whole answers a request that wants no stream.
func (s *strict) whole(w http.ResponseWriter, a answer) {
	s.made++
	fmt.Fprintf(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[
		{"id":"call%d","type":"function","function":{"name":"look","arguments":%q}}]},"finish_reason":"tool_calls"}],%s}`, s.made, a.calls[0], s.p.usage)
}

// stream answers in pieces, in the shapes of the provider.
func (s *strict) stream(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish, more string) {
		chunk := fmt.Sprintf(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]%s}`+"\n\n", delta, finish, more)
		for len(chunk) > 0 {
			n := len(chunk)
			if s.p.slow > 0 {
				n = 1
				time.Sleep(s.p.slow)
			}
			fmt.Fprint(w, chunk[:n])
			chunk = chunk[n:]
		}
	}
	number := func(shape string) string {
		s.made++
		return strings.ReplaceAll(shape, "#", fmt.Sprint(s.made%10))
	}
	quoted := func(text string) string { q, _ := json.Marshal(text); return string(q) }
	if s.p.thinks != "" {
		for range 2 {
			send(number(s.p.thinks)+`"content":null`, "null", "")
		}
	}
	if s.p.parts {
		send(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`, "null", "")
	}
	for piece := range strings.SplitAfterSeq(a.text, " ") {
		if s.p.parts {
			send(`"content":[{"type":"text","text":`+quoted(piece)+`}]`, "null", "")
		} else {
			send(`"content":`+quoted(piece), "null", "")
		}
	}
	if a.refusal != "" {
		send(`"refusal":`+quoted(a.refusal), "null", "")
	}
	name, calls := "look", a.calls
	if a.final != "" {
		name, calls = "choose", []string{a.final}
	}
	for i, arguments := range calls {
		send(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%s,%s"type":"function","function":{"name":%q,"arguments":%s}}]`,
			i, quoted(number(s.p.id)), number(s.p.signs), name, quoted(arguments)), "null", "")
	}
	finish := s.p.stop
	switch {
	case a.finish != "":
		finish = a.finish
	case len(calls) > 0:
		finish = s.p.called
	}
	usage := ""
	if !a.dropsUsage {
		usage = "," + s.p.usage
	}
	send("", quoted(finish), usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// client is the real client before a strict server.
type client struct {
	*OpenAI
	server *strict
	log    bytes.Buffer
	waits  []time.Duration
}

func newClient(t *testing.T, p *provider) *client {
	t.Helper()
	yes := true
	c := &client{server: &strict{t: t, p: p}}
	log := slog.New(slog.NewTextHandler(&c.log, nil))
	o, err := NewOpenAI(OpenAIConfig{Model: "m", Log: log, MaxTokens: 1000, Effort: "low", Parallel: &yes})
	if err != nil {
		t.Fatal(err)
	}
	o.svc = openai.NewChatCompletionService(option.WithMaxRetries(0), option.WithBaseURL("http://provider/v1/"),
		option.WithHTTPClient(&http.Client{Transport: openaiWire{c.server, nil, ""}}))
	o.wait = func(_ context.Context, d time.Duration) error { c.waits = append(c.waits, d); return nil }
	c.OpenAI = o
	return c
}

// complexSchema has what servers differ about.
const complexSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false, "required": ["kind", "where"],
	"anyOf": [{"required": ["kind"]}, {"required": ["where"]}],
	"properties": {
		"kind": {"anyOf": [{"const": "a", "description": "the first"}, {"const": "b"}]},
		"where": {"$ref": "#/$defs/place"},
		"mail": {"type": ["string", "null"], "format": "email", "pattern": "^[^@]+@[^@]+$"},
		"count": {"type": "integer", "enum": [1, 2], "exclusiveMinimum": 0},
		"many": {"type": "array"},
		"odd": {"type": "string", "properties": {}, "required": ["x"]},
		"both": {"allOf": [{"$ref": "#/$defs/place"}, {"properties": {"floor": {"type": "integer"}}, "required": ["floor"]}]}
	},
	"$defs": {"place": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}, "within": {"$ref": "#/$defs/place"}}, "required": ["name"], "additionalProperties": false}}
}`

func lookTools() []Tool {
	return []Tool{
		{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"o":{"type":"object"}}}`), Pure: true},
		{Name: "nothing", Description: "Takes nothing.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
}

// providerTasks are what agents do with a model.
var providerTasks = []struct {
	name string
	do   func(t *testing.T, c *client)
}{
	{"text", func(t *testing.T, c *client) {
		t.Helper()
		var h collector
		r, err := c.ask(t, Request{}, h.on, answer{text: "forty two it is"})
		if err != nil || r.Text != "forty two it is" || h.text() != r.Text || len(h.pieces) < 2 {
			t.Errorf("%+v, %v, heard %q", r, err, h.pieces)
		}
	}},
	{"call", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{calls: []string{`{"n":1}`}})
		wantCalls(t, r, err, `{"n":1}`)
	}},
	{"parallel calls", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{calls: []string{`{"n":1}`, `"{\"n\":\"2\"}"`, `{"tags":"[\"a\"]","o":null}`}})
		wantCalls(t, r, err, `{"n":1}`, `{"n":2}`, `{"tags":["a"]}`)
	}},
	{"results", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{text: "I look.", calls: []string{`{"n":1}`, `{"n":2}`}})
		if err != nil {
			t.Fatal(err)
		}
		first := r
		talk := append(answered(r), Message{Role: RoleUser, Text: "No more calls: answer now."})
		r, err = c.ask(t, Request{Tools: lookTools(), Choice: ChoiceNone, Messages: talk}, nil, answer{text: "done"})
		if err != nil || r.Text != "done" {
			t.Errorf("%+v, %v", r, err)
		}
		c.wantBack(t, first)
	}},
	{"only calls", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{Tools: lookTools()}, nil, answer{calls: []string{`{"n":1}`}})
		if err != nil {
			t.Fatal(err)
		}
		first := r
		r, err = c.ask(t, Request{Tools: lookTools(), Messages: answered(r)}, nil, answer{text: "done"})
		if err != nil || r.Text != "done" {
			t.Errorf("%+v, %v", r, err)
		}
		c.wantBack(t, first)
	}},
	{"structured output", func(t *testing.T, c *client) {
		t.Helper()
		tools := []Tool{{Name: "choose", Description: "Ends.", Schema: json.RawMessage(complexSchema)}}
		r, err := c.ask(t, Request{Tools: tools, Choice: ChoiceRequired}, nil, answer{final: `{"kind":"a","where":"{\"name\":\"x\"}","mail":null}`})
		wantCalls(t, r, err, `{"kind":"a","where":{"name":"x"},"mail":null}`)
	}},
	{"token limit", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{}, nil, answer{text: "it is fo", finish: c.server.p.cut})
		if err != nil || r.Text != "it is fo"+cutMark {
			t.Errorf("%+v, %v", r, err)
		}
	}},
	{"refusal", func(t *testing.T, c *client) {
		t.Helper()
		_, err := c.ask(t, Request{}, nil, answer{refusal: "I cannot help with that."})
		wantError(t, err, false, "refused to answer")
	}},
	{"call as text", func(t *testing.T, c *client) {
		t.Helper()
		for _, pure := range []bool{true, false} {
			tools := lookTools()
			tools[0].Pure = pure
			var h collector
			leak := []answer{{text: c.server.p.leak}}
			if !pure || c.server.p.name == "Anthropic" { // no JSON
				leak = append(leak, answer{calls: []string{`{"n":1}`}})
			}
			r, err := c.ask(t, Request{Tools: tools}, h.on, leak...)
			wantCalls(t, r, err, `{"n":1}`)
			if h.text() != "" {
				t.Errorf("heard %q", h.pieces)
			}
		}
	}},
	{"no usage", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{}, nil, answer{text: strings.Repeat("word ", 100), dropsUsage: true})
		if err != nil || !r.Usage.Estimated || r.Usage.InputTokens < 10 || r.Usage.OutputTokens < 100 {
			t.Errorf("%+v, %v", r, err)
		}
	}},
	{"retry after", func(t *testing.T, c *client) {
		t.Helper()
		r, err := c.ask(t, Request{}, nil, answer{busy: true}, answer{text: "fine"})
		if err != nil || r.Text != "fine" || !slices.Equal(c.waits, []time.Duration{37 * time.Second}) {
			t.Errorf("%+v, %v, waits %v", r, err, c.waits)
		}
	}},
	{"idle stream", func(t *testing.T, c *client) {
		t.Helper()
		var h collector
		r, err := c.ask(t, Request{}, h.on, answer{hangs: true}, answer{text: "fine"})
		if err != nil || r.Text != "fine" || h.text() != "fine" {
			t.Errorf("%+v, %v, heard %q", r, err, h.pieces)
		}
	}},
	{"takeover", func(t *testing.T, c *client) { // of a conversation that another model began
		t.Helper()
		other := &Response{Text: "", Calls: []Call{{"call.0|123456789012345678901234567890123456789", "look", `{"n":1}`}, {"1", "look", "{}"}}, Opaque: &Opaque{
			Model: "openai:other", Members: Members{"reasoning_content": json.RawMessage(`"hm"`)}, Calls: []Members{{"extra_content": json.RawMessage(`{"google":{}}`)}, nil},
		}}
		r, err := c.ask(t, Request{Tools: lookTools(), Messages: answered(other)}, nil, answer{text: "done"})
		if err != nil || r.Text != "done" {
			t.Errorf("%+v, %v", r, err)
		}
	}},
}

// ask asks the model for something, with every option that agents use.
func (c *client) ask(t *testing.T, r Request, on func(Event), answers ...answer) (*Response, error) {
	t.Helper()
	cold := 0.2
	r.System, r.Temperature, r.Stop = "You help.", &cold, []string{"END"}
	r.Messages = append([]Message{{Role: RoleUser, Text: "go"}}, r.Messages...)
	c.server.answers, c.waits = answers, nil
	return c.Respond(t.Context(), r, on)
}

// answered are the messages of a reply and of its results.
func answered(r *Response) []Message {
	talk := []Message{{Role: RoleAssistant, Text: r.Text, Calls: r.Calls, Opaque: r.Opaque}}
	for _, c := range r.Calls {
		talk = append(talk, Message{Role: RoleTool, CallID: c.ID, Text: `{"seen":true}`})
	}
	return talk
}

// wantBack checks that what only the model reads came back to it as it was.
func (c *client) wantBack(t *testing.T, r *Response) {
	t.Helper()
	for _, m := range c.server.last.messages() {
		for i, call := range m.calls() {
			if call["id"] != r.Calls[i].ID {
				t.Errorf("the id %v came back as %v", r.Calls[i].ID, call["id"])
			}
		}
		for name, v := range r.Opaque.Members {
			if back, _ := json.Marshal(m[name]); len(m.calls()) > 0 && string(back) != string(v) {
				t.Errorf("%s %s came back as %s", name, v, back)
			}
		}
	}
}

func wantCalls(t *testing.T, r *Response, err error, arguments ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Calls {
		got = append(got, c.Arguments)
	}
	values := func(texts []string) (out []any) {
		for _, s := range texts {
			var v any
			if json.Unmarshal([]byte(s), &v) != nil {
				v = "no JSON: " + s
			}
			out = append(out, v)
		}
		return out
	}
	if d := cmp.Diff(values(arguments), values(got)); d != "" {
		t.Error(d)
	}
}

// TestProviders lets agents' tasks be done by models of each provider. Each server refuses what
// that provider refuses; what a refusal teaches is remembered, so nothing is refused twice, and is
// logged once. The table of docs/models.md is the outcome.
func TestProviders(t *testing.T) {
	table := "| Provider | refuses | so writ sends | tasks |\n|---|---|---|---|\n"
	for _, p := range providers {
		c := newClient(t, &p)
		passed := 0
		t.Run(p.name, func(t *testing.T) {
			for _, task := range providerTasks {
				if t.Run(task.name, func(t *testing.T) {
					c.server.t = t
					synctest.Test(t, func(t *testing.T) { task.do(t, c) })
				}) {
					passed++
				}
			}
			for i, what := range c.server.refused {
				if slices.Contains(c.server.refused[i+1:], what) {
					t.Errorf("refused twice: %s", what)
				}
			}
		})
		var refuses, adapted []string
		for _, r := range p.refusals {
			refuses = append(refuses, "["+r.what+"]("+r.source+")")
		}
		for _, row := range adaptationTable {
			if c.learned()&row.do != 0 && row.log != "" {
				adapted = append(adapted, row.log)
				if n := strings.Count(c.log.String(), `adapted="`+row.log+`"`); n != 1 {
					t.Errorf("%s: %q is logged %d times", p.name, row.log, n)
				}
			}
		}
		table += fmt.Sprintf("| %s | %s | %s | %d of %d |\n", p.name, strings.Join(refuses, ", "), strings.Join(adapted, ", "), passed, len(providerTasks))
	}
	const path, begins, ends = "../../docs/models.md", "<!-- providers -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begins)
	_, after, ended := strings.Cut(rest, ends)
	want := before + begins + table + ends + after
	if found && ended && *updateTable {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(page)); d != "" {
		t.Errorf("docs/models.md is not what the test finds (go test ./agentic/model -run TestProviders -update):\n%s", d)
	}
}
