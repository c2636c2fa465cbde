package gateway

import (
	"slices"
	"strings"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/state/agents"
)

// TestMCPPinned: pinned skills are listed beside the tools that find the others; a pattern that
// matches none is logged. The tools of a search are called in both eras, also with an answer to a
// question.
func TestMCPPinned(t *testing.T) {
	for era, option := range eras {
		t.Run(era, func(t *testing.T) {
			w, d := mcpWorld(t, nil, func(c *Config, _ *pace) { c.MCPTools, c.MCPPinned = 2, []string{"crm.l*", "none.*"} })
			c := w.mcpClient(option)
			list, err := c.ListTools(t.Context(), wire.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, one := range list.Tools {
				names = append(names, one.Name)
				if one.Name != "list" && one.Name != "ask_shop" && !slices.Contains(agents.ClientTools, one.Name) {
					t.Errorf("%s may be another tool's name, too", one.Name)
				}
				if a := one.Annotations; one.Name == toolCall && (!*a.DestructiveHint || *a.ReadOnlyHint) || one.Name == toolRead && !*a.ReadOnlyHint {
					t.Errorf("%+v", one)
				}
			}
			slices.Sort(names)
			want := []string{"ask_shop", "call_tool", "describe_tool", "get_result", "handle_message", "list", "read_lines", "read_tool", "run_task", "search_tools"}
			if !slices.Equal(names, want) {
				t.Errorf("%q, want %q", names, want)
			}
			if log := w.log.String(); !strings.Contains(log, `"pattern":"none.*"`) || strings.Contains(log, "crm.l*") {
				t.Errorf("logged: %s", log)
			}
			for range 2 {
				if r := w.use(c, toolCall, map[string]any{"name": "crm__close", "arguments": map[string]any{"id": "t1"}}); own(t, r)["n"] != 1.0 {
					t.Errorf("%+v", r)
				}
			}
			if calls := d.called(); len(calls) != 2 || calls[0].Skill != "crm.close" || string(calls[0].Args) != `{"id":"t1"}` || calls[0].Request == calls[1].Request {
				t.Errorf("%+v", calls)
			}
			if r := own(t, w.use(c, "crm__close", map[string]any{"id": "t1"})); r["code"] != "MALFORMED_ARGS" || r["hint"] != `use call_tool: {"name": "crm__close", "arguments": {…}}; describe_tool has its input schema` || len(d.called()) != 2 {
				t.Errorf("a tool that is not listed: %v", r)
			}
			for tool, args := range map[string]map[string]any{
				toolCall: {"name": "crm.close", "args": 1}, toolRead: {"name": "crm__close"}, toolDescribe: {"name": "crm.close"}, toolSearch: {"query": "x", "limit": "all"},
			} {
				if r := w.use(c, tool, args); !r.IsError || own(t, r)["code"] != "MALFORMED_ARGS" {
					t.Errorf("%s %v: %+v", tool, args, r)
				}
			}
		})
	}
}
