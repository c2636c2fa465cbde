package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// studio is a skill server whose tool render runs until it is opened, and reports its progress
// meanwhile.
type studio struct {
	skills string // as --skills takes it
	open   chan struct{}

	mu     sync.Mutex // guards the rest
	times  map[string]int
	ended  int
	gaveUp chan struct{} // closed when a call was cancelled
}

// studioTick is the time between two reports of progress.
const studioTick = 200 * time.Millisecond

func serveStudio(t *testing.T, settings string) *studio {
	t.Helper()
	f := &studio{open: make(chan struct{}), times: map[string]int{}, gaveUp: make(chan struct{})}
	m := server.NewMCPServer("studio", "1", server.WithToolCapabilities(false))
	m.AddTool(mcp.NewToolWithRawSchema("render", "Renders a film.", json.RawMessage(`{"type":"object"}`)), f.render)
	srv := httptest.NewServer(server.NewStreamableHTTPServer(m, server.WithStateLess(true)))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	f.skills = settings + " -- " + srv.URL + "/mcp"
	return f
}

func (f *studio) render(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	id, _ := req.Params.Meta.AdditionalFields["aob.dev/intent_id"].(string)
	f.mu.Lock()
	f.times[id]++
	f.mu.Unlock()
	tick := time.NewTicker(studioTick)
	defer tick.Stop()
	for frame := 1; ; frame++ {
		select {
		case <-f.open:
			f.mu.Lock()
			f.ended++
			f.mu.Unlock()
			return mcp.NewToolResultText(`{"frames":1000}`), nil
		case <-ctx.Done():
			f.mu.Lock()
			select {
			case <-f.gaveUp:
			default:
				close(f.gaveUp)
			}
			f.mu.Unlock()
			return nil, ctx.Err()
		case <-tick.C:
			said := map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": frame, "total": 1000, "message": fmt.Sprintf("frame %d", frame)}
			_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", said)
		}
	}
}

// director is a mind for a plan of one step that renders.
func director() *mind {
	return &mind{
		plan: func(in planning) model.Call {
			return steps(step(in.FirstStep, "render it", "render", 0, "{frames: integer}"))
		},
		act: func(in working) action {
			switch {
			case len(in.Calls) == 0:
				return use(in.Skills[0], `{}`)
			case in.Calls[0].Output == nil:
				return insufficient("nobody knows whether it was rendered", "look")
			}
			return finish
		},
	}
}

// stream opens an address that answers with events.
func (s *system) stream(web *http.Client, method, path, body string) *bufio.Scanner {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if web == http.DefaultClient {
		req.Header.Set("X-Api-Key", s.key)
	}
	resp, err := web.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: HTTP %d", method, path, resp.StatusCode)
	}
	return bufio.NewScanner(resp.Body)
}

// statusOf reads events until one has the progress of a call.
func statusOf(t *testing.T, lines *bufio.Scanner) (plan string) {
	t.Helper()
	for lines.Scan() {
		var e struct {
			Data struct {
				State, Message  string
				PlanID          string `json:"plan_id"`
				IntentID        string `json:"intent_id"`
				Progress, Total float64
			} `json:"data"`
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if ok && json.Unmarshal([]byte(data), &e) == nil && e.Data.IntentID != "" {
			if e.Data.State != "running" || e.Data.Total != 1000 || e.Data.Message != fmt.Sprintf("frame %v", e.Data.Progress) {
				t.Errorf("progress of a call: %s", data)
			}
			return e.Data.PlanID
		}
	}
	t.Fatalf("the stream has ended without the progress of a call: %v", lines.Err())
	return ""
}

// TestLongCall: calls that take several times the timeout of their server, and report progress
// meanwhile, end as others do. An MCP client, a chat and a page see the progress.
func TestLongCall(t *testing.T) {
	t.Parallel()
	f := serveStudio(t, "timeout_sec=1 effect=render:pure")
	s := start(t, setup{Model: director(), Skills: []string{f.skills}})
	began := time.Now()

	seen := make(chan mcp.JSONRPCNotification, 1000)
	client, err := mcpclient.NewStreamableHttpClient(s.url+"/mcp", transport.WithHTTPHeaders(map[string]string{"X-Api-Key": s.key}), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	client.OnNotification(func(n mcp.JSONRPCNotification) { seen <- n })
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Initialize(t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{ProtocolVersion: mcp.ProtocolVersion20251125, ClientInfo: mcp.Implementation{Name: "test", Version: "1"}}}); err != nil {
		t.Fatal(err)
	}
	result := make(chan string, 1)
	go func() {
		r, err := client.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "render", Meta: &mcp.Meta{ProgressToken: "p"}}})
		raw, _ := json.Marshal(r)
		result <- fmt.Sprint(string(raw), err)
	}()

	chat := s.stream(http.DefaultClient, http.MethodPost, "/agent/run", `{"message":"Render my film.","stream":true}`)
	plan := statusOf(t, chat)
	page := s.at(s.as("local"))
	if of := statusOf(t, s.stream(page.web, http.MethodGet, "/console/plans/"+plan+"/events", "")); of != plan {
		t.Errorf("the page of %s shows the progress of %s", plan, of)
	}
	if p := page.open("/console/plans/" + plan); !strings.Contains(p.text, `id="progress"`) {
		t.Errorf("the page has no place for the progress: %d", p.status)
	}
	for shown := false; !shown; {
		n := <-seen
		message, _ := n.Params.AdditionalFields["message"].(string)
		shown = strings.HasPrefix(message, "frame ") && n.Params.AdditionalFields["progressToken"] == "p" && n.Params.AdditionalFields["total"] == 1000.0
	}
	close(f.open)
	if got := <-result; !strings.Contains(got, "1000") || strings.Contains(got, "isError") {
		t.Errorf("the client got %s", got)
	}
	ended := false
	for chat.Scan() {
		ended = ended || strings.Contains(chat.Text(), `"status":"complete"`)
	}
	if !ended || time.Since(began) < 2*time.Second {
		t.Errorf("the chat has ended: %t, after %s", ended, time.Since(began))
	}
	if len(f.times) != 2 || f.ended != 2 {
		t.Errorf("called %v, ended %d times", f.times, f.ended)
	}
}

// TestLongCallOutlivesItsStep: a call that takes longer than the time limit of its step is made
// once, and the step goes on with its result.
func TestLongCallOutlivesItsStep(t *testing.T) {
	t.Parallel()
	f := serveStudio(t, "effect=render:pure")
	s := start(t, setup{Model: director(), Skills: []string{f.skills}, Step: 4 * time.Second})
	chat := s.stream(http.DefaultClient, http.MethodPost, "/agent/run", `{"message":"Render my film.","stream":true}`)
	plan := statusOf(t, chat)
	s.await("another task waits", func() bool { return s.planOf(s.as("local"), plan).Epoch == 2 })
	close(f.open)
	for chat.Scan() {
	}
	if v := s.planOf(s.as("local"), plan); v.Status != catalog.PlanComplete || v.ReplanCount != 0 || len(f.times) != 1 || f.ended != 1 {
		t.Errorf("called %v, and the plan is %+v", f.times, v)
	}
}

// TestCancelledLongCall: the server of a call is told when its plan is cancelled.
func TestCancelledLongCall(t *testing.T) {
	t.Parallel()
	f := serveStudio(t, "effect=render:pure")
	s := start(t, setup{Model: director(), Skills: []string{f.skills}})
	plan := statusOf(t, s.stream(http.DefaultClient, http.MethodPost, "/agent/run", `{"message":"Render my film.","stream":true}`))
	if status, p := s.call(s.as("local"), http.MethodDelete, "/agent/plans/"+plan, nil, nil); status != http.StatusOK {
		t.Fatalf("cancel: %d %+v", status, p)
	}
	select {
	case <-f.gaveUp:
	case <-time.After(patience):
		t.Fatal("the server goes on with a call that was cancelled")
	}
	var codes []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && len(codes) == 0; {
		for _, o := range s.intents(plan) {
			if o.Type == "skill.call" && o.Outcome != nil {
				codes = append(codes, string(o.Outcome.Code))
			}
		}
	}
	if len(codes) != 1 || codes[0] != "CANCELLED" {
		t.Errorf("its outcome is %v", codes)
	}
}

// TestKillDuringLongCall: a call that acts once and was cut off is never made again. Its outcome is
// unknown, and equal calls are refused until somebody has looked.
func TestKillDuringLongCall(t *testing.T) {
	t.Parallel()
	f := serveStudio(t, "effect=render:once")
	x := boot(t, director(), f.skills)
	x.holdNothing()
	id := x.ask(func(_, data string) bool { return strings.Contains(data, `"message":"frame `) })
	x.kill()
	x.start()
	x.finished(id)
	if len(f.times) != 1 {
		t.Errorf("called %v", f.times)
	}
	codes := map[string]int{}
	for _, o := range x.records(id) {
		if o.Type == "skill.call" {
			codes[line(o)]++
		}
	}
	once := codes["skill.call INDETERMINATE"]
	if delete(codes, "skill.call INDETERMINATE"); once != 1 || len(codes) > 1 || len(codes) != min(1, codes["skill.call CONFLICT_IDEMPOTENCY"]) {
		t.Errorf("%d outcomes are unknown, and beside them %v", once, codes)
	}
}
