package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/e2e/testdata/crm"
)

// counted counts the requests to a model, and estimates their tokens.
type counted struct {
	model.Model
	mu               sync.Mutex // guards the rest
	requests, tokens int
}

func (c *counted) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	size := len(req.System)
	for _, m := range req.Messages {
		size += len(marshalled(m))
	}
	for _, t := range req.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	c.mu.Lock()
	c.requests++
	c.tokens += size / 4
	c.mu.Unlock()
	return c.Model.Respond(ctx, req, on)
}

// take returns the counts since the last call.
func (c *counted) take() (requests, tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests, tokens = c.requests, c.tokens
	c.requests, c.tokens = 0, 0
	return requests, tokens
}

// plainLoop is the loop that most frameworks have: it gives the model all tools of a server, makes
// the calls of each reply, and returns the first text.
func plainLoop(t *testing.T, m model.Model, tools *client.Client, task string) string {
	t.Helper()
	listed, err := tools.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	req := model.Request{
		System: "You are a helpful assistant. Use the tools where they help, and answer the question.",
		Messages: []model.Message{
			{Role: model.RoleUser, Note: "Date: " + time.Now().UTC().Format("Monday, 2006-01-02"), Text: "[Task]\n" + task},
		},
	}
	for _, tool := range listed.Tools {
		req.Tools = append(req.Tools, model.Tool{Name: tool.Name, Description: tool.Description, Schema: json.RawMessage(marshalled(tool.InputSchema))})
	}
	for range 20 {
		reply, err := m.Respond(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(reply.Calls) == 0 {
			return reply.Text
		}
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Text: reply.Text, Calls: reply.Calls})
		for i, c := range reply.Calls {
			got, err := tools.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: c.Name, Arguments: json.RawMessage(c.Arguments)}})
			if err != nil {
				t.Fatal(err)
			}
			result := got.StructuredContent
			if result == nil {
				result = json.RawMessage(got.Content[0].(mcp.TextContent).Text)
			}
			req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, CallID: c.ID, Text: marshalled(map[string]any{"label": fmt.Sprintf("r%d", i+1), "result": result})})
		}
	}
	t.Fatalf("%q: no answer", task)
	return ""
}

// TestCallsBesidePlainLoop: the default way takes no more requests to a model than a plain loop
// over the same tools where something is looked up, and at most 1.3 times as many where something
// is changed. The tokens of look-ups are at most 1.1 times those of the plain loop. Where the words
// of the request lead to none of the skills, which the plain loop has all, one more is needed.
func TestCallsBesidePlainLoop(t *testing.T) {
	t.Parallel()
	m := &counted{Model: &clerk{}}
	s, _ := startOfficeOf(t, m)
	plain := crm.New(time.Now().UTC())
	tools, err := client.NewInProcessClient(plain.MCP())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Initialize(t.Context(), mcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	ana := s.as("ana")
	const row = "%-55s %2d %6d %5d   %2d %6d %5d"
	var table strings.Builder
	for _, kind := range []struct {
		name          string
		tasks         []string
		calls, tokens float64 // the most, relative to the plain loop
	}{
		{"look-ups", []string{
			"Which customers do we have in Bergen?", "Which closed tickets are there?", "Which tickets does Ben have?", "What is in order O-1003?",
			"Which invoices are unpaid?", "What did C-007 order?", "Where is the latest order of C-002?", "Are there any notes about C-007?",
		}, 1.0, 1.1},
		{"look-ups in words that no skill has", []string{"What is T-3 about?", "Give me a summary of C-007."}, 1.5, 1.5},
		{"changes", []string{
			"Close ticket T-17.", "Assign T-5 to Ben.", "Make T-6 urgent.", "Close all tickets older than 10 days.", "Remind everybody who is overdue of their invoices.",
		}, 1.3, 0},
	} {
		var ours, theirs, ourTokens, theirTokens int
		var ourTime, theirTime time.Duration
		for _, task := range kind.tasks {
			begun := time.Now()
			want := plainLoop(t, m, tools, task)
			requests, tokens := m.take()
			took, begun := time.Since(begun), time.Now()
			got := s.ask(ana, task)
			r, k := m.take()
			own := time.Since(begun)
			fmt.Fprintf(&table, row+"\n", task, requests, tokens, took.Milliseconds(), r, k, own.Milliseconds())
			theirs, theirTokens, ours, ourTokens = theirs+requests, theirTokens+tokens, ours+r, ourTokens+k
			theirTime, ourTime = theirTime+took, ourTime+own
			if got.Status != "complete" || !strings.Contains(got.Response, strings.SplitN(want, "\n", 2)[0]) {
				t.Errorf("%s: %s: %q%s, the plain loop: %q", task, got.Status, got.Response, got.Reason, want)
			}
		}
		fmt.Fprintf(&table, row+"   × %.2f calls, × %.2f tokens\n", kind.name, theirs, theirTokens, theirTime.Milliseconds(), ours, ourTokens, ourTime.Milliseconds(), float64(ours)/float64(theirs), float64(ourTokens)/float64(theirTokens))
		if float64(ours) > kind.calls*float64(theirs) || kind.tokens > 0 && float64(ourTokens) > kind.tokens*float64(theirTokens) {
			t.Errorf("%s take too many requests or tokens", kind.name)
		}
	}
	t.Logf("calls, prompt tokens and ms without the model, one request after another:\n%-55s plain loop          writ\n%s", "", table.String())
}
