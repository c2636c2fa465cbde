package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

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
