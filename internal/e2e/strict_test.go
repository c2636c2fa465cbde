package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

// A server of the chat completions API that refuses what OpenAI's refuses. What it
// answers is decided from the HTTP request alone.

// strictRequest is what the server looks at.
type strictRequest struct {
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature"`
	Stop        []string `json:"stop"`
	Messages    []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name      string  `json:"name"`
				Arguments *string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			Parameters  struct {
				Type string `json:"type"`
			} `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Stream        bool            `json:"stream"`
	StreamOptions json.RawMessage `json:"stream_options"`
}

var strictName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// fault is what is wrong with a request, and which parameter it is about.
func (r strictRequest) fault() (param, why string) {
	if r.Temperature != nil && *r.Temperature != 1 && strings.HasPrefix(r.Model, "o") {
		return "temperature", fmt.Sprintf("Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", *r.Temperature)
	}
	if len(r.Stop) > 0 && strings.HasPrefix(r.Model, "o") {
		return "stop", "Unsupported parameter: 'stop' is not supported with this model."
	}
	if param, why := r.toolFault(); why != "" {
		return param, why
	}
	if len(r.StreamOptions) > 0 && !r.Stream {
		return "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	return r.messageFault()
}

func (r strictRequest) toolFault() (param, why string) {
	if len(r.Tools) > 128 {
		return "tools", fmt.Sprintf("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(r.Tools))
	}
	if len(r.Tools) == 0 && len(r.ToolChoice) > 0 {
		return "tool_choice", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
	}
	for i, t := range r.Tools {
		at := fmt.Sprintf("tools[%d].function.", i)
		switch {
		case t.Type != "function":
			return fmt.Sprintf("tools[%d].type", i), "Invalid value."
		case !strictName.MatchString(t.Function.Name):
			return at + "name", "Invalid '" + at + "name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
		case len([]rune(t.Function.Description)) > 1024:
			return at + "description", "Invalid '" + at + "description': string too long. Expected a string with maximum length 1024."
		case t.Function.Parameters.Type != "object":
			return at + "parameters", `Invalid schema for function '` + t.Function.Name + `': schema must be a JSON Schema of 'type: "object"'.`
		}
	}
	return "", ""
}

func (r strictRequest) messageFault() (param, why string) {
	if len(r.Messages) == 0 {
		return "messages", "Invalid 'messages': empty array. Expected an array with minimum length 1."
	}
	var open []string
	for i, m := range r.Messages {
		at := fmt.Sprintf("messages.[%d]", i)
		if m.Role != "tool" && len(open) > 0 {
			return at, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: " + strings.Join(open, ", ")
		}
		switch m.Role {
		case "system", "developer", "user":
		case "assistant":
			if len(m.ToolCalls) == 0 && (len(m.Content) == 0 || string(m.Content) == "null") {
				return at + ".content", "Invalid value for 'content': expected a string, got null."
			}
			for _, c := range m.ToolCalls {
				if c.ID == "" || slices.Contains(open, c.ID) || c.Type != "function" || !strictName.MatchString(c.Function.Name) || c.Function.Arguments == nil {
					return at + ".tool_calls", "Invalid value."
				}
				open = append(open, c.ID)
			}
		case "tool":
			n := slices.Index(open, m.ToolCallID)
			if n < 0 {
				return at + ".role", "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
			}
			open = slices.Delete(open, n, n+1)
		default:
			return at + ".role", "Invalid value: '" + m.Role + "'."
		}
	}
	if len(open) > 0 {
		return "messages", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (No response messages: " + strings.Join(open, ", ") + ")"
	}
	return "", ""
}

// serveStrict serves m as a reasoning model, and gives its base URL. It may refuse only
// what writ finds out by asking.
func serveStrict(t *testing.T, m model.Model) string {
	t.Helper()
	c := &completions{t: t}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var strict strictRequest
		var req completionRequest
		if err != nil || json.Unmarshal(raw, &strict) != nil || json.Unmarshal(raw, &req) != nil {
			t.Errorf("request %s, error %v", raw, err)
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		if param, why := strict.fault(); why != "" {
			if param != "temperature" {
				t.Errorf("OpenAI's server refuses %s: %s", param, why)
			}
			refuse(w, param, why)
			return
		}
		if len(req.Messages) == 1 { // writ asks at its start what a model takes
			c.stream(w, &model.Response{Text: `{"ready":true}`}, false)
			return
		}
		reply, err := m.Respond(r.Context(), req.request(), nil)
		if err != nil {
			refuse(w, "", err.Error())
			return
		}
		if r.Context().Err() == nil { // who asked may be dead
			c.stream(w, reply, false)
		}
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL + "/v1"
}

func refuse(w http.ResponseWriter, param, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, marshalled(map[string]any{"error": map[string]string{"message": why, "type": "invalid_request_error", "param": param, "code": "unsupported_value"}}))
}

// TestStrict: what OpenAI's server refuses is refused.
func TestStrict(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	tools := func(n int, name, description string) string {
		one := fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":{"type":"object"}}}`, name, description)
		return `"tools":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `],`
	}
	for _, tt := range []struct{ name, body, param string }{
		{"sound", tools(128, "a-b_C9", strings.Repeat("ü", 1024)) + `"messages":[{"role":"user","content":"hi"},` + call + `,{"role":"tool","tool_call_id":"c1","content":"{}"}]`, ""},
		{"a name", tools(1, "crm.close", "x") + `"messages":[{"role":"user","content":"hi"}]`, "tools[0].function.name"},
		{"a long name", tools(1, strings.Repeat("n", 65), "x") + `"messages":[{"role":"user","content":"hi"}]`, "tools[0].function.name"},
		{"129 tools", tools(129, "f", "x") + `"messages":[{"role":"user","content":"hi"}]`, "tools"},
		{"a description", tools(1, "f", strings.Repeat("x", 1025)) + `"messages":[{"role":"user","content":"hi"}]`, "tools[0].function.description"},
		{"an unanswered call", `"messages":[{"role":"user","content":"hi"},` + call + `]`, "messages"},
		{"a call answered late", `"messages":[` + call + `,{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"c1","content":"{}"}]`, "messages.[1]"},
		{"an answer to nothing", `"messages":[{"role":"tool","tool_call_id":"c1","content":"{}"}]`, "messages.[0].role"},
		{"a temperature", `"temperature":0,"messages":[{"role":"user","content":"hi"}]`, "temperature"},
		{"a choice without tools", `"tool_choice":"required","messages":[{"role":"user","content":"hi"}]`, "tool_choice"},
	} {
		var r strictRequest
		if err := json.Unmarshal([]byte(`{"model":"o4",`+tt.body+`}`), &r); err != nil {
			t.Fatal(tt.name, err)
		}
		if param, why := r.fault(); param != tt.param || (why == "") != (tt.param == "") {
			t.Errorf("%s: %q %s", tt.name, param, why)
		}
	}
}
