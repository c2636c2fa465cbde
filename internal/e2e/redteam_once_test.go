package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/internal/node"
)

// oddAnswers to a delivered call that acts once: bodies of JSON-RPC results, by name; "" cuts the connection.
var oddAnswers = map[string]string{
	"null": `null`, "text": `"saved"`, "number": `7`, "list": `[]`, "empty": `{}`, "no list": `{"content":{"type":"text","text":"saved"}}`, "null content": `{"content":null}`,
	"part null": `{"content":[null]}`, "part text": `{"content":["saved"]}`, "unknown part": `{"content":[{"type":"json","json":{"a":1}}]}`, "bad base64": `{"content":[{"type":"image","mimeType":"image/png","data":"-_-_"}]}`,
	"nan": `{"content":[],"structuredContent":{"a":NaN}}`, "twice": `{"content":[],"content":[{"type":"text","text":"saved"}]}`, "big": `{"content":[],"structuredContent":{"a":123456789012345678901234567890}}`,
	"surrogate": `{"content":[{"type":"text","text":"\ud800"}]}`, "no text": `{"content":[{"type":"text"}]}`, "error as text": `{"isError":"true","content":[]}`, "cut": "", "half": `{"content":[{"type":"te`,
	"later": `{"task":{"taskId":"1","status":"working"}}`, "ask back": `{"resultType":"input_required"}`,
}

// serveOdd serves a tool for each answer, and counts its calls.
func serveOdd(t *testing.T, answers map[string]string) (url string, calls func(tool string) int) {
	t.Helper()
	var mu sync.Mutex
	count := map[string]int{}
	names := make([]string, 0, len(answers))
	for name := range answers {
		names = append(names, name)
	}
	sort.Strings(names)
	tools := make([]map[string]any, 0, len(names))
	for _, name := range names {
		tools = append(tools, map[string]any{"name": oddTool(name), "description": "Saves.", "inputSchema": map[string]string{"type": "object"}})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if r.Method != http.MethodPost || json.Unmarshal(raw, &q) != nil {
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer := `{}`
		switch q.Method {
		case "initialize":
			answer = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
		case "tools/list":
			answer = marshalled(map[string]any{"tools": tools})
		case "tools/call":
			mu.Lock()
			count[q.Params.Name]++
			mu.Unlock()
			for name, text := range answers {
				if oddTool(name) == q.Params.Name {
					answer = text
				}
			}
		}
		if len(q.ID) == 0 {
			rw.WriteHeader(http.StatusAccepted)
			return
		}
		if answer == "" {
			panic(http.ErrAbortHandler)
		}
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL + "/mcp", func(tool string) int {
		mu.Lock()
		defer mu.Unlock()
		return count[tool]
	}
}

func oddTool(name string) string { return "save_" + strings.ReplaceAll(name, " ", "_") }

// TestRedTeamOnce: a call that acts once is made once, whatever its server answers and however
// often a model writes it again.
func TestRedTeamOnce(t *testing.T) {
	t.Parallel()
	url, calls := serveOdd(t, oddAnswers)
	args := "trust=true name=odd"
	for name := range oddAnswers {
		args += " effect=" + oddTool(name) + ":once"
	}
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Model: newPuppet(), Skills: []string{args + " -- " + url}})
	s.holdNothing()
	ana := s.addPerson("default", "ana", "user")
	reached := 0
	for name := range oddAnswers {
		tool := oddTool(name)
		attack(t, attempt{name, func() string {
			s.knock(ana, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": "Please CALL odd." + tool + ` {"n":1} NOW`})
			reached += calls(tool)
			if n := calls(tool); n > 1 {
				return fmt.Sprintf("%d effects", n)
			}
			return ""
		}})
	}
	if reached == 0 {
		t.Error("no call came to the server: the attempts show nothing")
	}
}

// TestRedTeamRepeats: a client's id names a call until that is answered, and neither gives the
// answer to other arguments nor has a call of the same one at the same time made twice.
func TestRedTeamRepeats(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	ana, bob := w.addPerson("default", "ana", "user"), w.addPerson("default", "bob", "user")
	for _, id := range []any{1, "1", 0, -1, "", "a b"} {
		params := func(region string) map[string]any {
			return map[string]any{"name": "pay", "arguments": map[string]string{"region": region}}
		}
		first := w.callTool(ana, id, params("eu"))
		attack(
			t,
			attempt{fmt.Sprintf("the id %v with other arguments", id), func() string {
				if got := w.calls(pay, func() { w.callTool(ana, id, params("ch")) }); got == "" {
					return "the call was not made"
				}
				return ""
			}},
			attempt{fmt.Sprintf("the id %v with denied arguments", id), func() string {
				return w.calls(pay, func() { w.callTool(ana, id, params("us")) })
			}},
			attempt{fmt.Sprintf("the id %v of somebody else", id), func() string {
				if second := w.callTool(bob, id, params("eu")); second == first {
					return "the answer of another's call"
				}
				return ""
			}},
		)
	}
	for host, origin := range map[string]string{"evil.example": "", "": "https://evil.example", "writ.evil.example": "http://evil.example", "localhost.evil.example": "null"} {
		attack(t, attempt{"to " + host + " from " + origin, func() string {
			status, _, text := w.knock(ana, http.MethodPost, "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"}, "Host", host, "Origin", origin, "Accept", "application/json, text/event-stream")
			if status != http.StatusForbidden {
				return fmt.Sprintf("HTTP %d %s", status, text)
			}
			return ""
		}})
	}
}
