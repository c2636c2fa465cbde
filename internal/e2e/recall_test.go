package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

const (
	fact      = "4711"
	forgotten = "What is my access code?"
	// begins is longer than what the summary of a session shows of a moment.
	begins = "At the beginning of the conversation the user told the assistant the access code of the depot by the river, which they keep forgetting, and asked the assistant to keep it in mind for the rest of the year. "
)

// recaller is a model server that decides from the HTTP request alone. As the dreaming
// agent it writes down what it is told; as general it looks up what the prompt names.
type recaller struct {
	completions

	mu       sync.Mutex
	captured []completionRequest // of the agent general
}

func (k *recaller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var raw completionRequest
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil || len(raw.Messages) == 0 {
		k.t.Errorf("%s: %v", r.URL.Path, err)
		return
	}
	req := raw.request()
	if strings.Contains(fmt.Sprint(raw.Messages), "\nAgent: dreaming-agent") {
		k.stream(w, replying(req, call("final_result", k.dream(raw))), false)
		return
	}
	k.mu.Lock()
	k.captured = append(k.captured, raw)
	k.mu.Unlock()
	last := req.Messages[len(req.Messages)-1]
	switch {
	case last.Role == model.RoleTool:
		found := "nothing"
		if strings.Contains(last.Text, fact) {
			found = fact
		}
		k.stream(w, &model.Response{Text: "Your code is " + found + "."}, false)
	case last.Text == forgotten && strings.Contains(fmt.Sprint(raw.Messages), "talk:access_code: "):
		k.stream(w, replying(req, call("search", `{"mode":"LOOKUP","query":"talk:access_code"}`)), false)
	default:
		k.stream(w, &model.Response{Text: last.Text + " " + strings.Repeat("More of it. ", 120)}, false)
	}
}

// dream is what the dreaming agent makes of a conversation.
func (*recaller) dream(raw completionRequest) string {
	told := fmt.Sprint(raw.Messages)
	if strings.Contains(told, "My code is "+fact) {
		return `{"moments":[{"key":"access-code","summary":"` + begins + `It is ` + fact + `.","topics":["access"],"emotions":[]},{"key":"depot","summary":"The depot is by the river.","topics":[],"emotions":[]}],` +
			`"affinities":[{"from":"access-code","to":"depot","kind":"explains","weight":0.9},{"from":"access-code","to":"nowhere","kind":"explains","weight":0.9}]}`
	}
	return `{"moments":[],"affinities":[]}`
}

// prompt is a captured request: the bytes of what was said before, and all of it.
func (k *recaller) prompt(i int) (history int, all string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i < 0 {
		i += len(k.captured)
	}
	messages := k.captured[i].Messages
	for _, m := range messages[1 : len(messages)-1] {
		history += len(m.Content)
	}
	return history, fmt.Sprint(messages)
}

// TestRecall: thirty turns in one session. No prompt passes its budget; after twenty turns
// the session is dreamt of, while turns go on; and what was said first, which no prompt has
// any more, is found by a LOOKUP that the record shows.
func TestRecall(t *testing.T) {
	t.Parallel()
	const budget = 6000 * 4
	k := &recaller{completions: completions{t: t}}
	srv := httptest.NewServer(k)
	t.Cleanup(srv.Close)
	k.url = srv.URL + "/v1"
	s := start(t, setup{Model: k.model()})
	ana := s.as("ana")
	ana.session = "talk"
	say := func(message string) (out turn) {
		t.Helper()
		if _, p := s.call(ana, http.MethodPost, "/agent/run", map[string]string{"message": message, "agent": "general"}, &out); p.Code != "" || out.Status != "complete" {
			t.Fatalf("%s: %+v %s", message, p, out.Reason)
		}
		return out
	}
	query := func(mode, text string, out any) intents.Code {
		t.Helper()
		_, p := s.call(ana, http.MethodPost, "/query/", map[string]string{"mode": mode, "query": text}, out)
		return p.Code
	}
	say("My code is " + fact + ". Keep it in mind.")
	for i := 1; i < 29; i++ {
		say(fmt.Sprintf("Question %d?", i))
		if size, _ := k.prompt(-1); size > budget {
			t.Errorf("turn %d: %d bytes of history", i, size)
		}
		if i == 19 {
			s.await("the session is dreamt of", func() bool {
				return slices.ContainsFunc(s.intents(""), func(o intent) bool { return strings.Contains(string(o.Args), `"dream:plan_`) && o.Outcome != nil })
			})
		}
	}
	last := say(forgotten)
	if last.Response != "Your code is "+fact+"." {
		t.Errorf("answer %q", last.Response)
	}
	size, prompt := k.prompt(-2)
	if strings.Contains(prompt, fact) || size > budget || !strings.Contains(prompt, "[Session context] talk:chunk_plan_") || !strings.Contains(prompt, "→ REM LOOKUP talk:chunk_plan_") {
		t.Errorf("%d bytes of history: %s", size, prompt)
	}
	found := turn{Intents: s.intents(last.PlanID)}.called("memory.query")
	if len(found) != 1 || found[0].Outcome == nil || found[0].Outcome.Status != intents.Done || string(found[0].Args) != `{"mode":"LOOKUP","text":"talk:access_code"}` {
		t.Fatalf("%+v", found)
	}

	var near catalog.MemoryQueryResult
	if code := query("TRAVERSE", "talk:depot", &near); code != "" || len(near.Hits) != 3 || near.Hits[0].Key != "talk:depot" {
		t.Errorf("%s %+v", code, near.Hits)
	}
	var rows catalog.MemoryQueryResult
	var types []string
	s.await("the recorder has the rows of tools", func() bool {
		rows, types = catalog.MemoryQueryResult{}, nil
		if code := query("SQL", "SELECT message_type, tool_calls FROM messages WHERE plan_id = '"+last.PlanID+"' ORDER BY created_at, position", &rows); code != "" {
			t.Fatal(code)
		}
		for _, row := range rows.Rows {
			types = append(types, fmt.Sprint(row["message_type"]))
		}
		return len(types) >= 4
	})
	if d := gocmp.Diff([]string{"user", "tool_call", "tool_response", "assistant"}, types); d != "" {
		t.Error(d)
	}
	if text := fmt.Sprint(rows.Rows); !strings.Contains(text, `"name":"search"`) || !strings.Contains(text, `"id":"1.1.0"`) {
		t.Error(text)
	}
	ben := s.as("ben")
	ben.session = "talk"
	for _, text := range []string{"talk:access_code", found[0].Decision.IntentID} {
		if _, p := s.call(ben, http.MethodPost, "/query/", map[string]string{"mode": "LOOKUP", "query": text}, nil); p.Code != intents.NotFound {
			t.Errorf("another user reads %s: %+v", text, p)
		}
	}
}
