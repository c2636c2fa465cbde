package agentic

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/state/agents"
)

var update = flag.Bool("update", false, "write testdata/wire anew")

// changing matches the parts that differ between runs.
var changing = regexp.MustCompile(`Date: [^\\]*\\nTime: [^\\"]*(\\n\\n)?`)

// TestWire: the last request of each built-in agent in a successful turn, as a server receives it
// over HTTP.
func TestWire(t *testing.T) {
	c := newCore(t)
	managed(c)
	m := wellDone()
	layer(c, m, allRoles...)
	dispatchTurn(c)
	shown(c)

	got := make(chan []byte, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer sk-test" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		got <- raw
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Done."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer srv.Close()
	var sent []byte
	remote, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: srv.URL + "/v1", APIKey: "sk-test", Model: "m", Sent: func(body []byte) { sent = body }})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{agents.Planner, agents.Executor, agents.Composer} {
		asked := m.requests(name)
		if len(asked) == 0 {
			t.Fatalf("the %s asked nothing", name)
		}
		if _, err := remote.Respond(t.Context(), asked[len(asked)-1], nil); err != nil {
			t.Fatal(err)
		}
		raw := <-got
		if d := cmp.Diff(string(raw), string(sent)); d != "" {
			t.Errorf("%s: what is shown is not what was sent:\n%s", name, d)
		}
		golden(t, "testdata/wire/"+name+".json", changing.ReplaceAll(raw, nil))
	}
}

// golden compares JSON with a file.
func golden(t *testing.T, file string, raw []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-want +got; go test -run TestWire -update):\n%s", file, d)
	}
}
