package skills_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/sessions"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// deskBench is the executor with a remote agent at a real server.
type deskBench struct {
	*executortest.Executor
	site      *site
	docs      storage.Documents
	workflows sessions.Workflows
	got       []map[string]any // that the agent got
	say       func(args map[string]any) (*wire.CallToolResult, error)
}

func openDesk(t *testing.T, timeout time.Duration) *deskBench {
	t.Helper()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), storage.NewCheck(storage.DefaultDimension), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docs.Close() })
	b := &deskBench{docs: docs, workflows: sessions.Workflows{Documents: docs, Now: time.Now}}
	b.site = newSite(t, serverOf(tool{name: "handle_message", handle: func(_ context.Context, r wire.CallToolRequest) (*wire.CallToolResult, error) {
		b.got = append(b.got, r.GetArguments())
		return b.say(r.GetArguments())
	}}))
	dial := func(ctx context.Context, endpoint string) (skills.RemoteAgent, error) {
		c, err := mcp.Dial(ctx, mcp.Source{URL: endpoint}, mcp.Options{Timeout: timeout, MaxBytes: skills.MaxAnswer})
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	b.Executor = executortest.New(t, skills.Name, nil, skills.Handlers(skills.Config{Now: time.Now, Workflows: b.workflows, Dial: dial}))
	return b
}

// message is an intent of the task of the agent desk.
func (b *deskBench) message(session, text string) executortest.Intent {
	in := executortest.Intent{Type: "skill.call", OfAgent: true, Args: map[string]any{"skill": "desk.handle_message", "input": map[string]any{
		"display_name": "Ana", "raw_input": text, "intent_summary": "Wants " + text, "entities": map[string]any{"account": "okta"}, "detected_language": "de",
		"employee_id": "ben", "session_id": "other", "workflow_state": map[string]any{"stolen": true}, // set by the executor alone
	}}}
	in.Context.SessionID = session
	in.Ticket.Scope = &intents.TaskScopeClaim{Skills: []string{"desk.handle_message"}}
	in.Ticket.Pins = []intents.Pin{{Skill: "desk.handle_message", Digest: intents.Digest(nil), Effect: "once", Kind: intents.KindAgent, Server: b.site.srv.URL + quakes.Path}}
	return in
}

// says makes the agent answer with a text.
func (b *deskBench) says(text string) {
	b.say = func(map[string]any) (*wire.CallToolResult, error) { return wire.NewToolResultText(text), nil }
}

// TestMessage: the agent gets all ten arguments, whose message it is comes from the grant, and
// what it keeps of a session comes back to it there, and nowhere else. Nobody else sees it.
func TestMessage(t *testing.T) {
	b := openDesk(t, 5*time.Second)
	history := executortest.New(t, sessions.Name, nil, sessions.Handlers(sessions.Config{Documents: b.docs, Now: time.Now}))
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	history.Must(t, executortest.Intent{Type: "session.append", NoScope: true, Args: catalog.SessionAppend{SessionID: "s1", Key: "turn:t0", Turns: []catalog.Turn{
		{Role: "user", Content: "Hello", Timestamp: at}, {Role: "think", Content: "Greets.", Timestamp: at}, {Role: "agent", Content: "How can I help?", Timestamp: at},
	}}}, nil)
	b.says(`{"content":"For which account?","workflow_complete":false,"workflow_state":{"step":"account"}}`)
	in := b.message("s1", "Reset my password")
	var got catalog.SkillCallResult
	b.Must(t, in, &got)
	if d := cmp.Diff(`{"content":"For which account?","workflow_complete":false}`, string(got.Output)); d != "" {
		t.Error(d)
	}
	want := map[string]any{
		"session_id": "s1", "request_id": b.got[0]["request_id"], "employee_id": "ana", "display_name": "Ana",
		"raw_input": "Reset my password", "intent_summary": "Wants Reset my password", "entities": map[string]any{"account": "okta"}, "detected_language": "de",
		"turn_history": []any{
			map[string]any{"role": "user", "content": "Hello", "timestamp": "2026-11-20T10:00:00Z"},
			map[string]any{"role": "agent", "content": "How can I help?", "timestamp": "2026-11-20T10:00:00Z"},
		},
		"workflow_state": map[string]any{},
	}
	if d := cmp.Diff(want, b.got[0]); d != "" {
		t.Error(d)
	}
	if id, _ := b.got[0]["request_id"].(string); !strings.HasPrefix(id, "sha256:") {
		t.Errorf("request_id is %q", id)
	}
	state := func(in executortest.Intent) any {
		t.Helper()
		b.Must(t, in, nil)
		return b.got[len(b.got)-1]["workflow_state"]
	}
	if got := state(b.message("s1", "okta")); !cmp.Equal(got, map[string]any{"step": "account"}) {
		t.Errorf("the next message comes with %v", got)
	}
	stranger := b.message("s1", "okta")
	stranger.Ticket.Actor.UserID = "ben"
	other := b.message("s1", "okta")
	other.Ticket.Pins[0].Skill, other.Ticket.Scope.Skills = "front.handle_message", []string{"front.handle_message"}
	other.Args.(map[string]any)["skill"] = "front.handle_message"
	asked := b.message("s3", "okta")
	asked.Ticket.Scope.Ask = "1.0"
	for name, in := range map[string]executortest.Intent{"another session": b.message("s2", "okta"), "another user": stranger, "another agent": other} {
		if got := state(in); !cmp.Equal(got, map[string]any{}) {
			t.Errorf("%s: it comes with %v", name, got)
		}
	}
	b.Must(t, asked, nil)
	if got := b.got[len(b.got)-1]["turn_history"]; !cmp.Equal(got, []any{}) {
		t.Errorf("an asked agent is told %v", got)
	}
	b.says(`{"content":"Done.","workflow_complete":true,"workflow_state":{"step":"end"}}`)
	b.Must(t, b.message("s1", "yes"), nil)
	if got := state(b.message("s1", "Reset my password")); !cmp.Equal(got, map[string]any{}) {
		t.Errorf("after its end the workflow begins with %v", got)
	}
}

// TestMessageAnswers: each way to answer is carried out, or fails for its own reason.
func TestMessageAnswers(t *testing.T) {
	text := func(s string) func(map[string]any) (*wire.CallToolResult, error) {
		return func(map[string]any) (*wire.CallToolResult, error) { return wire.NewToolResultText(s), nil }
	}
	for name, tc := range map[string]struct {
		say    func(args map[string]any) (*wire.CallToolResult, error)
		output string // of a good one
		code   intents.Code
		why    string // in reason or details
	}{
		"text of JSON": {say: text(`{"content":"Hi","workflow_complete":true,"confidence":1}`), output: `{"content":"Hi","workflow_complete":true}`},
		"structured": {say: func(map[string]any) (*wire.CallToolResult, error) {
			return wire.NewToolResultStructured(map[string]any{"content": "Hi", "workflow_complete": false}, "Hi"), nil
		}, output: `{"content":"Hi","workflow_complete":false}`},
		"plain text": {say: text(" I can help.\n"), output: `{"content":"I can help.","workflow_complete":false}`},
		"its own names": {say: func(args map[string]any) (*wire.CallToolResult, error) {
			raw, err := json.Marshal(map[string]any{"content": "Hi", "workflow_complete": false, "session_id": args["session_id"], "request_id": args["request_id"]})
			return wire.NewToolResultText(string(raw)), err
		}, output: `{"content":"Hi","workflow_complete":false}`},

		"no end":           {say: text(`{"content":"Hi"}`), output: `{"content":"Hi","workflow_complete":false,"odd":["workflow_complete is not true or false: the workflow goes on"]}`},
		"end of text":      {say: text(`{"content":"Hi","workflow_complete":"no"}`), output: `{"content":"Hi","workflow_complete":false,"odd":["workflow_complete is not true or false: the workflow goes on"]}`},
		"state of text":    {say: text(`{"content":"Hi","workflow_complete":false,"workflow_state":"x"}`), output: `{"content":"Hi","workflow_complete":false,"odd":["workflow_state was dropped: it is no object, or can be read in two ways"]}`},
		"state of two":     {say: text(`{"content":"Hi","workflow_complete":false,"workflow_state":{"a":1,"a":2}}`), output: `{"content":"Hi","workflow_complete":false,"odd":["workflow_state was dropped: it is no object, or can be read in two ways"]}`},
		"half a JSON":      {say: text(`{"content":"Hi","workflow_`), output: `{"content":"{\"content\":\"Hi\",\"workflow_","workflow_complete":false,"odd":["it begins as JSON and is none"]}`},
		"an array":         {say: text(`["Hi"]`), output: `{"content":"[\"Hi\"]","workflow_complete":false,"odd":["it is no object"]}`},
		"content of JSON":  {say: text(`{"content":["Hi"],"workflow_complete":true}`), output: `{"content":"[\"Hi\"]","workflow_complete":true,"odd":["content is no text"]}`},
		"a lone surrogate": {say: text(`{"content":"Hi \ud800","workflow_complete":true}`), output: "{\"content\":\"Hi \ufffd\",\"workflow_complete\":true,\"odd\":[\"content has characters that cannot be read\"]}"},
		"a long text":      {say: text(strings.Repeat("x", 40_000)), output: `{"content":"` + visible.Cut(strings.Repeat("x", 40_000), 32768) + `","workflow_complete":false,"odd":["content was cut: it has more than 32768 characters"]}`},

		"no content":        {say: text(`{"workflow_complete":false}`), code: intents.ExecutorFailed, why: "/content"},
		"empty content":     {say: text(`{"content":"","workflow_complete":false}`), code: intents.ExecutorFailed, why: "/content"},
		"nothing":           {say: text(``), code: intents.ExecutorFailed, why: "/content"},
		"two readings":      {say: text(`{"content":"Hi","content":"Ho","workflow_complete":false}`), code: intents.ExecutorFailed, why: "two ways"},
		"two sessions":      {say: text(`{"content":"Hi","session_id":"s9","workflow_complete":false,"session_id":"s1"}`), code: intents.ExecutorFailed, why: "two ways"},
		"another's session": {say: text(`{"content":"Hi","workflow_complete":false,"session_id":"s9"}`), code: intents.ExecutorFailed, why: "data unavailable"},
		"another's name":    {say: text(`{"content":"Hi","workflow_complete":false,"employee_id":"ben"}`), code: intents.ExecutorFailed, why: "data unavailable"},
		"200 MB, say":       {say: text(strings.Repeat("x", 2*skills.MaxAnswer)), code: intents.OversizedOutput, why: "too large"},
		"failure": {say: func(map[string]any) (*wire.CallToolResult, error) {
			return wire.NewToolResultError("no such account"), nil
		}, code: intents.ExecutorFailed, why: "no such account"},
		"error": {say: func(map[string]any) (*wire.CallToolResult, error) { return nil, errors.New("broken") }, code: intents.ExecutorFailed, why: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			b := openDesk(t, 5*time.Second)
			b.say = tc.say
			r := b.Do(t, b.message("s1", "Hello"))
			if tc.code == "" {
				var got catalog.SkillCallResult
				if r.Code != intents.OK || json.Unmarshal(r.Result, &got) != nil || string(got.Output) != tc.output {
					t.Errorf("%+v %s", r, r.Result)
				}
				return
			}
			if r.Code != tc.code || r.Retryable || !strings.Contains(r.Reason+string(r.Result), tc.why) {
				t.Errorf("%+v %s", r, r.Result)
			}
			if slices.ContainsFunc(r.Events, func(f intents.ReportedEvent) bool { return f.Event == "skill.principal_mismatch" }) != strings.HasPrefix(name, "another's") {
				t.Errorf("its facts are %+v", r.Events)
			}
			in := executors.Intent{Ticket: intents.Ticket{Actor: intents.Principal{Tenant: "acme", UserID: "ana"}}, Context: intents.Context{SessionID: "s1"}}
			if state, err := b.workflows.State(t.Context(), &in, "desk"); err != nil || state != nil {
				t.Errorf("it kept %s %v", state, err)
			}
		})
	}
}

// TestMessageUndelivered: a missing agent has received nothing, and one that says
// nothing may have done anything. Neither is asked twice.
func TestMessageUndelivered(t *testing.T) {
	b := openDesk(t, 5*time.Second)
	b.site.become(down)
	in := b.message("s1", "Hello")
	in.Ticket.Pins[0].Server = "http://127.0.0.1:1/mcp"
	if r := b.Do(t, in); r.Code != intents.ExecutorFailed || !r.Retryable {
		t.Errorf("down: %+v", r)
	}
	b.site.become(serverOf(tool{name: "talk", handle: answer("", "Hi")}))
	if r := b.Do(t, b.message("s1", "Hello")); r.Code != intents.ExecutorFailed || !strings.Contains(string(r.Result), "no such tool") {
		t.Errorf("without the tool: %+v %s", r, r.Result)
	}

	b = openDesk(t, 2*time.Second) // in which a slow machine asks it, too
	var asked atomic.Int64
	free := make(chan struct{})
	b.say = func(map[string]any) (*wire.CallToolResult, error) {
		asked.Add(1)
		<-free
		return wire.NewToolResultText("Hi"), nil
	}
	t.Cleanup(func() { close(free) })
	if r := b.Do(t, b.message("s1", "Hello")); r.Code != intents.Indeterminate || asked.Load() != 1 {
		t.Errorf("never: %+v after %d messages", r, asked.Load())
	}
	wrong := b.message("s1", "Hello")
	wrong.Args.(map[string]any)["input"].(map[string]any)["raw_input"] = ""
	if r := b.Do(t, wrong); r.Code != intents.MalformedArgs || !strings.Contains(r.Reason, "/raw_input") {
		t.Errorf("a message that breaks the schema: %+v", r)
	}
}

// TestMessageFence: of two turns that both write, the later one stands.
func TestMessageFence(t *testing.T) {
	b := openDesk(t, 5*time.Second)
	first, second := b.message("s1", "first"), b.message("s1", "second")
	first.Position, second.Position = 200, 300
	b.say = func(args map[string]any) (*wire.CallToolResult, error) {
		if args["raw_input"] == "first" { // the second overtakes it
			b.says(`{"content":"Second.","workflow_complete":false,"workflow_state":{"by":"second"}}`)
			b.Must(t, second, nil)
			return wire.NewToolResultText(`{"content":"First.","workflow_complete":false,"workflow_state":{"by":"first"}}`), nil
		}
		return nil, errors.New("not asked")
	}
	if r := b.Do(t, first); r.Code != intents.StaleWrite || r.Retryable {
		t.Errorf("the first: %+v", r)
	}
	third := b.message("s1", "third")
	third.Position = 400
	b.Must(t, third, nil)
	if got := b.got[len(b.got)-1]["workflow_state"]; !cmp.Equal(got, map[string]any{"by": "second"}) {
		t.Errorf("what stands is %v", got)
	}
	if err := b.docs.(*sqlite.Documents).Close(); err != nil {
		t.Fatal(err)
	}
	if r := b.Do(t, b.message("s1", "fourth")); r.Code == intents.OK {
		t.Errorf("without a store: %+v", r)
	}
}

// TestMessageRepeated: an agent whose file says so gets a message again after a 500 and a time-out, and
// any other does not.
func TestMessageRepeated(t *testing.T) {
	for _, way := range []string{"500", "late"} {
		for effect, want := range map[string]int64{"once": 1, "idempotent": 2} {
			t.Run(way+" "+effect, func(t *testing.T) {
				b := openDesk(t, time.Second)
				var sent atomic.Int64
				free := make(chan struct{})
				t.Cleanup(func() { close(free) })
				honest := b.site.next
				b.site.become(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Idempotency-Key") != "" && sent.Add(1) == 1 {
						if way == "late" {
							select {
							case <-r.Context().Done():
							case <-free:
							}
						}
						http.Error(w, "broken", http.StatusInternalServerError)
						return
					}
					honest.ServeHTTP(w, r)
				}))
				b.says(`{"content":"Hi","workflow_complete":false}`)
				in := b.message("s1", "Hello")
				in.Ticket.Pins[0].Effect = effect
				r := b.Do(t, in)
				if (r.Code == intents.OK) != (effect == "idempotent") || sent.Load() != want {
					t.Errorf("%+v after %d messages", r, sent.Load())
				}
			})
		}
	}
}

// TestMessageShown: no character of a message is hidden from whoever reads it.
func TestMessageShown(t *testing.T) {
	b := openDesk(t, 5*time.Second)
	b.says("Hi")
	b.Must(t, b.message("s1", "Pay\u202e Ben\u0000\r\nnow \U0001F469\u200d\U0001F467"), nil)
	for name, want := range map[string]string{"raw_input": "Pay<U+202E> Ben<U+0000>\nnow \U0001F469\u200d\U0001F467", "intent_summary": "Wants Pay<U+202E> Ben<U+0000>\nnow \U0001F469\u200d\U0001F467"} {
		if b.got[0][name] != want {
			t.Errorf("%s is %q", name, b.got[0][name])
		}
	}
}
