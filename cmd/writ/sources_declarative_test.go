package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/state/agents"
)

// uuidgen prints a random id, in the form of a UUID.
func uuidgen() {
	b := make([]byte, 16)
	rand.Read(b)
	fmt.Printf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// declared serves a model, at $DECLARED, that reports what it uses. Told to ask the sample agent it
// searches and asks it; as the dreaming agent it dreams of a harbour; else it says hello.
func declared(ts *testscript.TestScript, _ *world, _ []string) {
	serveBodies(ts, "DECLARED", func(rw http.ResponseWriter, body []byte) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1020}}`+"\n\ndata: [DONE]\n\n", declaredReply(body))
	})
}

func declaredReply(body []byte) string {
	var req struct {
		Messages []struct{ Role, Content string }
	}
	if json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
		return `{}`
	}
	asked, done := 0, 0 // the last message of the user, and the calls since
	for i, m := range req.Messages {
		switch m.Role {
		case "user":
			asked, done = i, 0
		case "tool":
			done++
		}
	}
	call := func(name, args string) string {
		raw, _ := json.Marshal(args) // of a string
		return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}]}`, done, name, raw)
	}
	asks := strings.Contains(req.Messages[asked].Content, "ask the sample agent") && strings.Contains(string(body), `"ask_agent"`) && strings.Contains(string(body), "Agent: general")
	switch {
	case strings.Contains(string(body), `"final_result"`):
		return call("final_result", `{"moments":[{"key":"harbour","summary":"The user likes the harbour.","topics":["harbour"],"emotions":[]},{"key":"boat","summary":"The user has a boat.","topics":["boat"],"emotions":[]}],"affinities":[{"from":"boat","to":"harbour","kind":"builds_on","weight":0.5}]}`)
	case asks && done == 0:
		return call("search", `{"mode":"SEARCH","query":"X"}`)
	case asks && done == 1:
		return call("ask_agent", `{"agent_name":"sample-agent","input_text":"What of X?"}`)
	case strings.Contains(req.Messages[asked].Content, "at length"):
		text, _ := json.Marshal(strings.Repeat("The harbour has many boats. ", 80)) // of a string
		return fmt.Sprintf(`{"content":%s}`, text)
	}
	return `{"content":"Hello from the harbour."}`
}

// legible is what of a message of OTLP can be read.
var legible = regexp.MustCompile(`[\w.:/ -]{4,}`)

// collectSpans serves a collector of OpenTelemetry, at $COLLECTOR: spans.txt has what it is told.
func collectSpans(ts *testscript.TestScript, _ *world, _ []string) {
	serveBodies(ts, "COLLECTOR", func(_ http.ResponseWriter, body []byte) {
		for _, w := range legible.FindAll(body, -1) {
			if appendTo(ts.MkAbs("spans.txt"), w) != nil {
				return
			}
		}
	})
}

// serveBodies serves one answer to every request, at the variable, until the script ends.
func serveBodies(ts *testscript.TestScript, name string, answer func(http.ResponseWriter, []byte)) {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			answer(rw, body)
		}
	}))
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv(name, srv.URL)
}

// defined writes the files of agents that are defined in Go: from a struct, and from a literal.
func defined(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 2, "defined OF NEW")
	type of struct {
		_              struct{} `agent:"my-agent" description:"You are a research assistant. Search before answering."`
		Topic          string   `json:"topic" description:"Primary topic of the question"`
		RequiresSearch bool     `json:"requires_search" description:"Whether to search first"`
	}
	warm := 0.3
	for i, a := range []*agents.Agent{
		must[*agents.Agent](ts)(agents.Of[of](agents.Agent{Tools: []agents.Tool{{Name: "search", Description: "Query KB using REM"}, {Name: "action"}}})),
		must[*agents.Agent](ts)(agents.New(agents.Agent{Name: "my-agent", Description: "You are a research assistant.", Tools: []agents.Tool{{Name: "search", Description: "Query KB"}}, Temperature: &warm})),
	} {
		raw := must[[]byte](ts)(json.Marshal(a))
		ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[i])), 0o755))
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), raw, 0o600))
	}
}
