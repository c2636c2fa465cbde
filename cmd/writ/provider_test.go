package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// provider serves models, at $PROVIDER and one of:
//
//	/401   denies everybody, and repeats the key
//	/404   has no such model
//	/429   has too much to do
//	/plain answers every request with a text, and takes no temperature
//	/agent calls its first tool once and then answers: with the first line of the system
//	       prompt and what the tool said, or with final_result where it has that; as a judge
//	       it finds that failed turns were not answered
//	/slow  never answers
func provider(ts *testscript.TestScript, w *world, _ []string) {
	w.calledCities = make(chan struct{})
	var once sync.Once
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // who asked is gone
		}
		fails := func(status int, fault string) {
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("Retry-After-Ms", "1")
			rw.WriteHeader(status)
			fmt.Fprintf(rw, `{"error":%s}`, fault)
		}
		switch r.URL.Path {
		case "/401/chat/completions":
			key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			fails(http.StatusUnauthorized, fmt.Sprintf(`{"message":"Incorrect API key provided: %s.","type":"invalid_request_error","code":"invalid_api_key"}`, key))
		case "/404/chat/completions":
			fails(http.StatusNotFound, `{"message":"The model does not exist.","type":"invalid_request_error","code":"model_not_found"}`)
		case "/429/chat/completions":
			fails(http.StatusTooManyRequests, `{"message":"Rate limit reached for requests per minute.","type":"requests","code":"rate_limit_exceeded"}`)
		case "/plain/chat/completions":
			if strings.Contains(string(body), `"temperature"`) {
				fails(http.StatusBadRequest, `{"message":"Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}`)
				return
			}
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(rw, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1020}}`+"\n\ndata: [DONE]\n\n")
		case "/agent/chat/completions":
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(rw, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", agentReply(body))
		default:
			if strings.Contains(string(body), "List the cities") { // not a probe of the server
				once.Do(func() { close(w.calledCities) })
			}
			<-r.Context().Done()
		}
	}))
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv("PROVIDER", srv.URL)
}

// agentReply is the reply of the model behind /agent to a request.
func agentReply(body []byte) string {
	var req struct {
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	if json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
		return `{}`
	}
	last, tool := req.Messages[len(req.Messages)-1], ""
	for _, t := range req.Tools {
		if name := t.Function.Name; tool == "" || name == "final_result" && last.Role == "tool" {
			tool = name
		}
	}
	if tool == "" || last.Role == "tool" && tool != "final_result" {
		system, _, _ := strings.Cut(req.Messages[0].Content, "\n")
		text, _ := json.Marshal(system + " " + last.Content)
		return fmt.Sprintf(`{"content":%s}`, text)
	}
	args := `{}`
	if tool == "final_result" {
		args = `{\"largest\":\"Oslo\"}`
	}
	if tool == "verdict" {
		args = fmt.Sprintf(`{\"routed\":true,\"answered\":%v,\"honest\":true,\"why\":\"because\"}`, !strings.Contains(last.Content, `"status":"failed"`))
	}
	return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":%q,"arguments":"%s"}}]}`, tool, args)
}
