package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/storage"
)

// talker is a model server that decides from the HTTP request alone: it answers the
// last message with answer, as a plan without steps.
type talker struct {
	t      *testing.T
	answer func(message string) string

	mu       sync.Mutex
	captured [][]spoken // the messages of every request
}

type spoken struct{ Role, Content string }

func (k *talker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct{ Messages []spoken }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		k.t.Errorf("%s: %v", r.URL.Path, err)
		return
	}
	answer := "Nothing is worth a note."
	if !strings.Contains(fmt.Sprint(req.Messages), "\nAgent: dreaming-agent") { // which nobody has asked, beside the turns
		k.mu.Lock()
		k.captured = append(k.captured, req.Messages)
		k.mu.Unlock()
		_, message, _ := strings.Cut(req.Messages[len(req.Messages)-1].Content, "[Task]\n")
		answer = k.answer(message)
	}
	args, err := json.Marshal(map[string]string{"answer": answer})
	if err != nil {
		k.t.Error(err)
	}
	call := map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]string{"name": "plan", "arguments": string(args)}}
	raw, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": []any{
		map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{call}}, "finish_reason": "tool_calls"},
	}})
	if err != nil {
		k.t.Error(err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", raw)
}

// last are the messages of the last request, without the system's.
func (k *talker) last() []spoken {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.captured[len(k.captured)-1]), func(m spoken) bool { return m.Role == "system" })
}

// talk starts a system whose model is a talker, and a conversation with it.
func talk(t *testing.T, answer func(string) string) (*system, *talker, person) {
	t.Helper()
	return talkUnder(t, node.Limits{}, answer)
}

func talkUnder(t *testing.T, limits node.Limits, answer func(string) string) (*system, *talker, person) {
	t.Helper()
	k := &talker{t: t, answer: answer}
	srv := httptest.NewServer(k)
	t.Cleanup(srv.Close)
	m, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: srv.URL + "/v1", APIKey: "sk-test", Model: "mock"})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{Model: m, Limits: limits})
	ana := s.as("ana")
	ana.session = "talk"
	return s, k, ana
}

// TestConversation: a second message reaches the model with the first turn before it. A
// session in a turn takes no other message, and names the plan that it waits for.
func TestConversation(t *testing.T) {
	t.Parallel()
	gate := newGate()
	s, k, ana := talk(t, func(message string) string {
		switch message {
		case "Which outlet is first?":
			return "Outlet 7."
		case "Wait.":
			gate.pass(t.Context())
		}
		return "Outlet 9."
	})
	if got := s.ask(ana, "Which outlet is first?"); got.Response != "Outlet 7." || got.SessionID != "talk" {
		t.Fatalf("%+v", got)
	}
	if got := s.ask(ana, "And the second one?"); got.Response != "Outlet 9." {
		t.Fatalf("%+v", got)
	}
	told := k.last()
	if n := len(told); n != 3 || told[0] != (spoken{"user", "Which outlet is first?"}) || told[1] != (spoken{"assistant", "Outlet 7."}) || !strings.HasSuffix(told[2].Content, "And the second one?") {
		t.Errorf("%+v", told)
	}
	if s.ask(s.as("ana"), "Hello"); len(k.last()) != 1 {
		t.Errorf("a session of its own: %+v", k.last())
	}

	first := make(chan turn)
	go func() { first <- s.ask(ana, "Wait.") }()
	gate.wait(t)
	status, p := s.call(ana, http.MethodPost, "/agent/run", map[string]string{"message": "Still there?"}, nil)
	if status != http.StatusConflict || p.Code != intents.SessionBusy || p.PlanID == "" {
		t.Errorf("HTTP %d %+v", status, p)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/agent/run", strings.NewReader(`{"message":"Wait."}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "X-Api-Key": {ana.key}, "X-User-Id": {ana.user}, "X-Session-Id": {ana.session}}
	joined, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer joined.Body.Close()
	if got := joined.Header.Get("X-Plan-Id"); got != p.PlanID {
		t.Errorf("the same request gets plan %q: HTTP %d", got, joined.StatusCode)
	}
	close(gate.open)
	if got := <-first; got.PlanID != p.PlanID || got.Status != "complete" {
		t.Errorf("%+v", got)
	}
	if stream, err := io.ReadAll(joined.Body); err != nil || !strings.Contains(string(stream), `"response":"Outlet 9."`) {
		t.Errorf("%v: %s", err, stream)
	}
}

// TestLongConversation: thirty turns in one session. No prompt passes its budget, and the first
// messages are no longer quoted, but named.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	const budget = 6000 * 4 // bytes: four a token
	n := 0
	s, k, ana := talk(t, func(string) string {
		if n++; n == 1 {
			return "The code is 4711."
		}
		return fmt.Sprintf("Answer %d. %s", n, strings.Repeat("More. ", 200))
	})
	for i := range 30 {
		if got := s.ask(ana, fmt.Sprintf("Question %d", i)); got.Status != "complete" {
			t.Fatalf("turn %d: %s", i, got.Reason)
		}
		size := 0
		for _, m := range k.last()[:len(k.last())-1] {
			size += len(m.Content)
		}
		if size > budget {
			t.Errorf("turn %d: %d bytes of history", i, size)
		}
		if told := strings.Contains(fmt.Sprint(k.last()), "4711"); i > 0 && i < 10 && !told || i == 29 && told {
			t.Errorf("turn %d: the first answer is told: %v", i, told)
		}
	}
	last := k.last()
	if !strings.HasPrefix(last[0].Content, "[Earlier: Answer ") || !strings.Contains(last[0].Content, "→ REM LOOKUP m_") || last[0].Role != "assistant" {
		t.Errorf("%+v", last[0])
	}
}

// remembered: every turn that has ended stands in its session once, as its plan was
// answered, wherever writ died.
func (l *load) remembered(plans map[string]string) {
	l.t.Helper()
	docs, err := datadir.OpenDocuments(l.t.Context(), l.dir, documents(l.dir), 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer docs.Close()
	for id, answer := range plans {
		page, err := docs.Search(l.t.Context(), "default", storage.IndexMessages, storage.Query{Terms: map[string][]string{"plan_id": {id}, "message_type": {"user", "assistant"}}, Limit: 10})
		if err != nil {
			l.t.Fatal(err)
		}
		var said []string
		for _, doc := range page.Documents {
			var row struct {
				Type    string `json:"message_type"`
				Content string `json:"content"`
			}
			if err := json.Unmarshal(doc.Body, &row); err != nil {
				l.t.Fatal(err)
			}
			if !strings.HasPrefix(row.Content, "This waits for approval") {
				said = append(said, row.Type+": "+row.Content)
			}
		}
		if d := gocmp.Diff([]string{"user: Weigh the parcels", "assistant: " + answer}, said); d != "" {
			l.t.Errorf("plan %s (-want +got):\n%s", id, d)
		}
	}
}

// TestResumeSession: a user goes on with a session that has ended under a new id, whose first turn
// has the earlier conversation. A session that has not ended, one of somebody else and one that
// never was are refused.
func TestResumeSession(t *testing.T) {
	t.Parallel()
	const first, second = "Which outlet is first?", "And the second one?"
	s, k, ana := talkUnder(t, node.Limits{SessionTTL: time.Millisecond}, func(string) string { return "Outlet 7." })
	if got := s.ask(ana, first); got.Response != "Outlet 7." {
		t.Fatalf("%+v", got)
	}
	var resumed struct {
		SessionID string `json:"session_id"`
		From      string `json:"resumed_from"`
		Turns     int    `json:"turns"`
	}
	const path = "/agent/sessions/talk/resume"
	if status, p := s.call(ana, http.MethodPost, path, nil, &resumed); status != http.StatusOK || resumed.SessionID == "talk" || resumed.From != "talk" || resumed.Turns != 2 {
		t.Fatalf("HTTP %d %+v %+v", status, p, resumed)
	}
	ana.session = resumed.SessionID
	if got := s.ask(ana, second); got.SessionID != resumed.SessionID {
		t.Errorf("%+v", got)
	}
	if told := k.last(); len(told) != 3 || told[0] != (spoken{"user", first}) || told[1] != (spoken{"assistant", "Outlet 7."}) || !strings.HasSuffix(told[2].Content, second) {
		t.Errorf("%+v", told)
	}
	for who, at := range map[person]string{s.as("ben"): path, s.as("ana"): "/agent/sessions/nowhere/resume"} {
		if status, p := s.call(who, http.MethodPost, at, nil, nil); status < 400 || status >= 500 {
			t.Errorf("%s as %s: HTTP %d %+v", at, who.user, status, p)
		}
	}
	lasting, _, eve := talk(t, func(string) string { return "Outlet 7." })
	lasting.ask(eve, first)
	if status, p := lasting.call(eve, http.MethodPost, path, nil, nil); status != http.StatusUnprocessableEntity || !strings.Contains(p.Detail, "has not ended") {
		t.Errorf("HTTP %d %+v", status, p)
	}
}
