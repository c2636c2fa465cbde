package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// mcpFake serves /mcp: sessions that end, calls that are echoed, and one stream.
type mcpFake struct {
	t        *testing.T
	mu       sync.Mutex
	begun    int
	session  string
	skillKey string
	requests []string
}

func (f *mcpFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/mcp" || r.Header.Get("X-Api-Key") != "key" || r.Header.Get("X-Skill-Api-Key") != f.skillKey {
		f.t.Errorf("%s %s %v: %v", r.Method, r.URL, r.Header, err)
	}
	var m mcpMessage
	_ = json.Unmarshal(raw, &m)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+m.Method)
	w.Header().Set("Content-Type", "application/json")
	session := r.Header.Get("Mcp-Session-Id")
	switch {
	case m.Params.Meta.Version != "":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"headers":"%s %s %s %s"}}`, m.ID, session, r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Mcp-Method"), r.Header.Get("Mcp-Name"))
	case m.Method == "initialize":
		f.begun++
		f.session = fmt.Sprint("s", f.begun)
		w.Header().Set("Mcp-Session-Id", f.session)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25"}}`, m.ID)
	case session != f.session || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no such session"}}`)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "limited":
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"RATE_LIMITED"}}`)
	case m.Method == "broken":
		w.WriteHeader(http.StatusBadGateway)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"n\":9007199254740993}}\n\n", m.ID)
	}
}

// TestBridge: messages go through as they are, refusals name their request, and a session
// that the server has forgotten begins anew without the client.
func TestBridge(t *testing.T) {
	f := &mcpFake{t: t, skillKey: "of the caller"}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	in, write := io.Pipe()
	read, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Client{URL: srv.URL, Key: "key", SkillKey: f.skillKey}.Bridge(t.Context(), in, out)
		_ = out.Close()
	}()
	answers := bufio.NewScanner(read)
	say := func(message string, lines ...string) {
		t.Helper()
		if _, err := io.WriteString(write, message+"\n"); err != nil {
			t.Fatal(err)
		}
		for _, want := range lines {
			if !answers.Scan() || answers.Text() != want {
				t.Errorf("%s: %q, want %q", message, answers.Text(), want)
			}
		}
	}
	progress, result := `{"jsonrpc":"2.0","method":"notifications/progress"}`, `"result":{"n":9007199254740993}}`
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say("")
	say(`{"jsonrpc":"2.0","id":"a","method":"tools/call"}`, progress, `{"jsonrpc":"2.0","id":"a",`+result)
	say(`{"jsonrpc":"2.0","id":2,"method":"limited"}`, `{"error":{"code":-32600,"message":"RATE_LIMITED"},"id":2,"jsonrpc":"2.0"}`)
	say(`{"jsonrpc":"2.0","id":3,"method":"broken"}`, `{"error":{"code":-32000,"message":"the server answers 502"},"id":3,"jsonrpc":"2.0"}`)
	f.mu.Lock()
	f.session = "restarted"
	f.mu.Unlock()
	say(`{"jsonrpc":"2.0","id":4,"method":"tools/call"}`, progress, `{"jsonrpc":"2.0","id":4,`+result)
	say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":5,"result":{"headers":" 2026-07-28 tools/call x"}}`)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := strings.Join(f.requests, ","); f.begun != 2 || strings.Count(all, "notifications/initialized") != 2 || !strings.HasSuffix(all, "DELETE ") {
		t.Errorf("%d sessions: %s", f.begun, all)
	}
}

// TestBridgeWithoutServer: each request is answered although nobody is there.
func TestBridgeWithoutServer(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	var out strings.Builder
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n")
	if err := (Client{URL: srv.URL, Key: "key"}).Bridge(t.Context(), in, &out); err != nil {
		t.Error(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"id":2`) || strings.Count(got, "no answer from") != 2 || strings.Count(got, "start writ there (writ up)") != 2 {
		t.Errorf("%s", got)
	}
}
