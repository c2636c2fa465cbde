package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
)

// onPage is a block of docs/agents.md that begins with some text.
func onPage(t *testing.T, kind, begins string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```"+kind+"\n"+begins)
	block, _, whole := strings.Cut(after, "```")
	if !found || !whole {
		t.Fatalf("the page has no %s block that begins with %q", kind, begins)
	}
	return begins + block
}

// pageAgent runs the remote agent of the page. It gives its address, and the directory of
// its file.
func pageAgent(t *testing.T) (host, agents string) {
	t.Helper()
	host = freeAddress(t)
	dir := t.TempDir()
	const usual = "127.0.0.1:8081"
	for name, text := range map[string]string{"main.go": onPage(t, "go", "package main\n\nimport (\n\t\"context\""), "agents/helpdesk.yaml": onPage(t, "yaml", "# agents/helpdesk.yaml")} {
		if !strings.Contains(text, usual) {
			t.Fatalf("%s does not say where it is", name)
		}
		if err := os.MkdirAll(filepath.Join(dir, "agents"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, usual, host)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // with the race detector, too: what the other tests have compiled
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	agent := exec.CommandContext(ctx, program)
	agent.Stderr = t.Output()
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = agent.Wait() }) // killed
	(&system{t: t}).await("the agent listens", func() bool {
		resp, err := http.Get("http://" + host + "/health")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
	return host, filepath.Join(dir, "agents")
}

// TestRemoteAgentOfThePage: the agent that docs/agents.md shows passes the check, and
// resets a password in a conversation of two turns, without any model of ours.
func TestRemoteAgentOfThePage(t *testing.T) {
	t.Parallel()
	host, agents := pageAgent(t)
	env := func(name string) string { return map[string]string{"WRIT_AGENT_HOSTS": host}[name] }
	var out, notes bytes.Buffer
	args := []string{"registry", "probe", "http://" + host + "/mcp", filepath.Join(agents, "helpdesk.yaml")}
	if code := cli.Main(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &notes, Env: env}); code != 0 {
		t.Errorf("exit %d\n%s%s", code, &out, &notes)
	}
	const want = "10 points pass, 0 fail, 5 cannot be seen from here\n"
	if !strings.HasSuffix(notes.String(), want) || !strings.Contains(onPage(t, "console", "$ go run"), want) {
		t.Errorf("%s%s", &out, &notes)
	}
	notes.Reset()
	if code := cli.Main(t.Context(), args[:3], cli.IO{In: strings.NewReader(""), Out: &out, Err: &notes, Env: func(string) string { return "" }}); code != 1 || !strings.Contains(notes.String(), "1 of 15 points fail") {
		t.Errorf("without agent_hosts: exit %d\n%s%s", code, &out, &notes)
	}

	s := start(t, setup{Model: &cast{}, Agents: agents, Hosts: []string{host}})
	first := s.askAgent(s.as("local"), "helpdesk", "Reset my password")
	if first.Status != string(catalog.PlanComplete) || !strings.Contains(first.Response, "password") {
		t.Fatalf("%+v", first)
	}
	call := first.called("skill.call")
	if len(call) != 1 || string(call[0].Outcome.Result) != `{"output":{"content":"I can reset your password. For which account?","workflow_complete":false}}` {
		t.Errorf("calls %+v", call)
	}
	var second turn
	var p problem
	second.HTTP, p = s.call(s.as("local"), http.MethodPost, "/agent/run", map[string]string{"message": "okta", "agent": "helpdesk", "session_id": first.SessionID}, &second)
	second = s.readTurn(s.as("local"), "okta", second, p)
	if second.Response != "Done: a new password for okta is in your mail." {
		t.Errorf("the second turn: %+v", second)
	}
}

// TestRequestOfARemoteAgent: a request is routed to the agent of the page, and the next one of its
// session goes there unasked. Once the agent has completed its workflow, the session is closed: it
// accepts no turn, and another one continues the conversation.
func TestRequestOfARemoteAgent(t *testing.T) {
	t.Parallel()
	host, agents := pageAgent(t)
	m := newReception()
	m.will("helpdesk", 1, false, "en")
	s := start(t, setup{Model: m, Agents: agents, Hosts: []string{host}})
	first := s.request("", "Reset my password")
	if first.AgentID != "helpdesk" || first.Decision != "direct" || !strings.Contains(first.Response, "password") {
		t.Errorf("%+v", first)
	}
	if got := s.request(first.SessionID, "okta"); got.Decision != catalog.RouteBypass || !strings.HasPrefix(got.Response, "Done") || !got.Complete || first.Complete {
		t.Errorf("%+v", got)
	}
	if got := s.request(first.SessionID, "Reset my password"); got.Status != "failed" || got.Reason != "I could not complete this request: this conversation is closed. Begin a new one." {
		t.Errorf("after the workflow was complete: %+v", got)
	}
	var next struct {
		SessionID string `json:"session_id"`
		Turns     int    `json:"turns"`
	}
	if status, p := s.call(s.as("ana"), http.MethodPost, "/agent/sessions/"+first.SessionID+"/resume", nil, &next); status != http.StatusOK || next.Turns != 4 {
		t.Fatalf("HTTP %d %+v: %+v", status, p, next)
	}
	if got := s.request(next.SessionID, "Reset my password"); got.Decision != "direct" || !strings.HasPrefix(got.Response, "I can") {
		t.Errorf("in the session that goes on with it: %+v", got)
	}
}

// TestTurnsCarrySummaries: a remote agent reads with each earlier message what the classifier made
// of it, and its turns are counted by its name.
func TestTurnsCarrySummaries(t *testing.T) {
	t.Parallel()
	var histories [][]catalog.Turn
	desk := server.NewMCPServer("agent", "1", server.WithToolCapabilities(false))
	desk.AddTool(wire.NewTool("handle_message"), func(_ context.Context, r wire.CallToolRequest) (*wire.CallToolResult, error) {
		var in struct {
			History []catalog.Turn `json:"turn_history"`
		}
		err := r.BindArguments(&in)
		histories = append(histories, in.History)
		return wire.NewToolResultText("For which account?"), err
	})
	srv := httptest.NewServer(server.NewStreamableHTTPServer(desk, server.WithStateLess(true), server.WithDisableStreaming(true)))
	t.Cleanup(srv.Close)
	m := newReception()
	m.will("helpdesk", 1, false, "en")
	s := start(t, setup{Model: m, Agents: agentAt(t, srv.URL), Hosts: []string{strings.TrimPrefix(srv.URL, "http://")}})
	first := s.request("", "Reset my password")
	s.request(first.SessionID, "okta")
	s.request(first.SessionID, "and mail")
	if len(histories) != 3 {
		t.Fatalf("%d messages", len(histories))
	}
	var got []string
	for _, turn := range histories[2] {
		got = append(got, turn.Role+": "+turn.Content+" ("+turn.IntentSummary+")")
	}
	want := []string{"user: Reset my password (Wants something)", "agent: For which account? ()", "user: okta ()", "agent: For which account? ()"}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// heldAgent is a remote agent whose answer never comes.
func heldAgent(t *testing.T) (at string, got *atomic.Int64, reached chan struct{}) {
	t.Helper()
	got, reached = new(atomic.Int64), make(chan struct{})
	end := make(chan struct{})
	s := server.NewMCPServer("agent", "1", server.WithToolCapabilities(false))
	s.AddTool(wire.NewTool("handle_message"), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		if got.Add(1) == 1 {
			close(reached)
		}
		<-end
		return wire.NewToolResultText("Late."), nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { close(end); srv.CloseClientConnections(); srv.Close() })
	return srv.URL, got, reached
}

func agentAt(t *testing.T, url string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := "agent_id: helpdesk\ndisplay_name: Help desk\ndescription: Resets passwords.\nendpoint: " + url + "/mcp\ntype: mcp\nis_default: true\nconfidence_threshold: 0\nclarification_required: false\nexamples: [Reset my password]\n"
	front := "name: front\ndescription: Asks.\nsub_agents: [helpdesk]\n"
	for name, text := range map[string]string{"helpdesk.yaml": text, "front.yaml": front} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRemoteAgentMissing: a missing agent is unavailable, in plain words for the user; the asking
// agent continues without it.
func TestRemoteAgentMissing(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	s := start(t, setup{Model: &cast{parts: map[string]func(context.Context, model.Request) *model.Response{"front": desk("helpdesk")}}, Agents: agentAt(t, srv.URL), Hosts: []string{strings.TrimPrefix(srv.URL, "http://")}})
	got := s.askAgent(s.as("local"), "helpdesk", "Reset my password")
	if d := gocmp.Diff([]string{"failed", "I could not complete this request: Help desk is unavailable"}, []string{got.Status, got.Reason}); d != "" {
		t.Error(d)
	}
	if call := got.called("skill.call"); len(call) == 0 || call[0].Outcome.Code != intents.ExecutorFailed || !call[0].Outcome.Retryable {
		t.Errorf("%d calls", len(call))
	}
	if got := s.askAgent(s.as("local"), "front", "Reset my password"); got.Response != "Help desk cannot be reached." {
		t.Errorf("who asked says %q", got.Response)
	}
}

// TestRemoteAgentKilled: of a writ that is killed while a remote agent works, nobody knows
// what the agent did. It is not asked again, and an operator can say what it was.
func TestRemoteAgentKilled(t *testing.T) {
	at, got, reached := heldAgent(t)
	t.Setenv("WRIT_AGENTS", agentAt(t, at))
	t.Setenv("WRIT_AGENT_HOSTS", strings.TrimPrefix(at, "http://"))
	x := boot(t, &cast{}, fmt.Sprintf("name=none -- %s/none", at))
	id := x.post(`{"stream":true,"agent":"helpdesk","message":"Reset my password"}`, accepted)
	<-reached
	x.kill()
	x.start()
	v := x.finished(id)
	if v.Status != catalog.PlanFailed || v.Failure == nil || !strings.Contains(v.Failure.Reason, "Help desk is unavailable, and may have got the message") {
		t.Errorf("%s %+v", v.Status, v.Failure)
	}
	if len(v.IntentHistory) != 1 || v.IntentHistory[0].Status != string(intents.StatusIndetermined) || got.Load() != 1 {
		t.Fatalf("%d messages, %+v", got.Load(), v.IntentHistory)
	}
	x.resolve(v.IntentHistory[0].IntentID, "failed")
}

// TestRemoteAgentHeld: a message that waits for people is sent once they have approved, and
// its answer is that of the turn.
func TestRemoteAgentHeld(t *testing.T) {
	t.Parallel()
	host, agents := pageAgent(t)
	s := start(t, setup{Model: &cast{}, Agents: agents, Hosts: []string{host}})
	ben, _, dora := s.holds("helpdesk.handle_message")
	var held heldTurn
	if status, p := s.call(dora, http.MethodPost, "/agent/run", map[string]string{"message": "Reset my password", "agent": "helpdesk"}, &held); status != http.StatusAccepted {
		t.Fatalf("HTTP %d %+v", status, p)
	}
	_, seen := s.streamEnd(dora, held.PlanID, "") // to the hold
	if _, p := s.decide(ben, held.Approval.IntentID, catalog.DecisionApprove, ""); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	if last, _ := s.streamEnd(dora, held.PlanID, seen); last != "done" {
		t.Errorf("the stream ends with %s", last)
	}
	if v := s.planOf(dora, held.PlanID); v.Status != catalog.PlanComplete || v.Response != "I can reset your password. For which account?" {
		t.Errorf("%s %q", v.Status, v.Response)
	}
}
