package e2e

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/e2e/testdata/crm"
)

// mcpClient is an MCP client of a person.
func (s *system) mcpClient(who person) *mcpclient.Client {
	s.t.Helper()
	c, err := mcpclient.NewStreamableHttpClient(s.url+"/mcp", transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + who.key}), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if err := c.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.Initialize(s.t.Context(), mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "test", Version: "1"}}}); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// use calls a tool and returns its structured content.
func (s *system) use(c *mcpclient.Client, tool string, args map[string]any) map[string]any {
	s.t.Helper()
	r, err := c.CallTool(s.t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: args}})
	if err != nil {
		s.t.Fatalf("%s: %v", tool, err)
	}
	out, ok := r.StructuredContent.(map[string]any)
	if !ok {
		s.t.Fatalf("%s: %+v", tool, r)
	}
	return out
}

func (s *system) toolNames(c *mcpclient.Client) (names []string) {
	s.t.Helper()
	list, err := c.ListTools(s.t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// TestManyTools: of 400 tools an MCP client is listed none, and a model that reads only what the
// tools for searching say finds, describes and calls the right one. Whatever way a tool is called,
// people are shown that tool, and a key without it neither finds nor calls it.
func TestManyTools(t *testing.T) {
	t.Parallel()
	records := crm.New(time.Now().UTC())
	records.Archive(400)
	srv := httptest.NewServer(records.Handler())
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	s := start(t, setup{Skills: []string{"name=crm -- " + srv.URL + "/mcp"}})
	ana := s.addPerson("default", "ana", "user")
	s.addApprover("default", "ben")
	c := s.mcpClient(ana)
	want := []string{"call_tool", "describe_tool", "get_result", "handle_message", "read_lines", "read_tool", "run_task", "search_tools"}
	if got := slices.DeleteFunc(s.toolNames(c), func(n string) bool { return strings.HasPrefix(n, "ask_") }); !slices.Equal(got, want) {
		t.Fatalf("listed %q, want %q", got, want)
	}
	for _, task := range []struct {
		query, want string
		args        map[string]any
		by          string
	}{
		{"records of department 317", "archive_317", nil, "read_tool"},
		{"which support tickets are open", "list_tickets", map[string]any{"status": "open"}, "read_tool"},
		{"close a support ticket", "close_ticket", map[string]any{"ticket": "T-3"}, "call_tool"},
	} {
		found, _ := s.use(c, "search_tools", map[string]any{"query": task.query})["tools"].([]any)
		if len(found) != 10 {
			t.Fatalf("%q: %d hits", task.query, len(found))
		}
		i := slices.IndexFunc(found, func(x any) bool { return x.(map[string]any)["name"] == task.want })
		if i < 0 || found[i].(map[string]any)["read_only"] != (task.by == "read_tool") {
			t.Fatalf("%q: %v", task.query, found)
		}
		d := s.use(c, "describe_tool", map[string]any{"name": task.want})
		if d["name"] != task.want || d["input_schema"] == nil || d["description"] == "" {
			t.Errorf("%s: %v", task.want, d)
		}
		got := s.use(c, task.by, map[string]any{"name": task.want, "arguments": task.args})
		if task.by == "read_tool" {
			if got["status"] == "error" || records.Calls(task.want) != 1 {
				t.Errorf("%s: %v", task.want, got)
			}
			continue
		}
		if got["status"] != "held" || records.Calls(task.want) != 0 {
			t.Fatalf("%s: %v", task.want, got)
		}
		var approvals struct {
			Approvals []struct {
				Summary string          `json:"summary"`
				Args    json.RawMessage `json:"args"`
			} `json:"approvals"`
		}
		if status, p := s.call(s.as("ben"), "GET", "/agent/approvals", nil, &approvals); status != 200 || len(approvals.Approvals) != 1 || !strings.Contains(marshalled(approvals), "crm.close_ticket") {
			t.Errorf("%d %+v %+v", status, p, approvals)
		}
	}
	if got := s.use(c, "read_tool", map[string]any{"name": "close_ticket", "arguments": map[string]any{"ticket": "T-3"}}); got["code"] != "MALFORMED_ARGS" || got["pointer"] != "/name" {
		t.Errorf("read_tool of a tool that acts: %v", got)
	}

	if got := s.use(c, "archive_316", nil); got["code"] != "MALFORMED_ARGS" || !strings.Contains(fmt.Sprint(got["hint"]), "call_tool") || records.Calls("archive_316") != 0 {
		t.Errorf("a tool that is not listed: %v", got)
	}

	dan := s.mcpClient(s.keyFor("dan", "crm.archive_1*", "crm.archive_2*"))
	found, _ := s.use(dan, "search_tools", map[string]any{"query": "records of department 317", "limit": 100})["tools"].([]any)
	for _, x := range found {
		if name, _ := x.(map[string]any)["name"].(string); !strings.HasPrefix(name, "archive_1") && !strings.HasPrefix(name, "archive_2") {
			t.Errorf("a key is shown %s", name)
		}
	}
	if len(found) != 100 {
		t.Errorf("%d hits", len(found))
	}
	before := records.Calls("archive_317")
	for _, name := range []string{"archive_317", "crm.archive_317", "crm__archive_317", "nothing", "run_task", "call_tool"} {
		for _, by := range []string{"describe_tool", "read_tool", "call_tool"} {
			if got := s.use(dan, by, map[string]any{"name": name}); got["code"] != "MALFORMED_ARGS" {
				t.Errorf("%s of %s: %v", by, name, got)
			}
		}
	}
	if records.Calls("archive_317") != before {
		t.Error("a key calls a tool that it does not have")
	}

	// A key's own names are the only ones for its clients. The record and people have the skill's.
	fay := s.addPerson("default", "fay", "user")
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
		ID: "default-fay", Hash: intents.Digest([]byte(fay.key)), UserID: "fay", MaxRoles: []string{"user"}, Tools: []string{"crm.list_tickets", "crm.close_ticket", "crm.archive_31*"},
		Rename: map[string]string{"crm.close_ticket": "finish", "crm.archive_317": "list_tickets"}, Group: map[string]string{"crm.*": "desk"},
	}})
	f := s.mcpClient(fay)
	for _, name := range []string{"finish", "list_tickets", "desk__list_tickets", "desk__archive_310"} {
		if !slices.Contains(s.toolNames(f), name) {
			t.Errorf("%s is not listed among %q", name, s.toolNames(f))
		}
	}
	for _, name := range []string{"close_ticket", "crm.close_ticket", "desk__close_ticket", "archive_310", "archive_317"} {
		if r, err := f.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name}}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	before = records.Calls("archive_317")
	if got := s.use(f, "finish", map[string]any{"ticket": "T-3"}); got["status"] != "held" {
		t.Errorf("%v", got)
	}
	if s.use(f, "list_tickets", nil); records.Calls("archive_317") != before+1 {
		t.Error("the tool of a name is not called")
	}
	var waiting bus.ApprovalsReply
	if status, p := s.call(s.as("ben"), "GET", "/agent/approvals", nil, &waiting); status != 200 || len(waiting.Approvals) != 2 || strings.Count(marshalled(waiting), "finish") > 0 || !strings.Contains(marshalled(waiting.Approvals[1]), "crm.close_ticket") {
		t.Errorf("%d %+v %+v", status, p, waiting)
	}

	var named []string
	for _, o := range s.intents("") {
		var call catalog.SkillCall
		if o.Type == "skill.call" {
			_ = json.Unmarshal(o.Args, &call)
			named = append(named, call.Skill)
		}
	}
	if !slices.Equal(named, []string{"crm.archive_317", "crm.list_tickets", "crm.close_ticket", "crm.close_ticket", "crm.archive_317"}) {
		t.Errorf("the record names %q", named)
	}
}
