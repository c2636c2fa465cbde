package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/visible"
)

// DefaultMCPTools is how many skills routeMCP lists by default.
const DefaultMCPTools = 60

// Names of the tools that stand for the skills of a caller who has too many to list.
const (
	toolSearch   = "search_tools"
	toolDescribe = "describe_tool"
	toolRead     = "read_tool"
	toolCall     = "call_tool"
)

// Bounds of an answer of search_tools.
const (
	defaultHits    = 10
	hitDescription = 300 // bytes
)

// callerSkills are the skills that a caller may use, by the names that its clients know.
type callerSkills struct {
	byName map[string]catalog.Manifest
	names  map[string]string // by id
}

func newCallerSkills(skills []catalog.Manifest, names []string) callerSkills {
	c := callerSkills{byName: map[string]catalog.Manifest{}, names: map[string]string{}}
	for i, m := range skills {
		c.byName[names[i]], c.names[m.Name] = m, names[i]
	}
	return c
}

// named returns the skill of a name. One that the caller may not use is as unknown as one that does
// not exist.
func (c callerSkills) named(name string) (catalog.Manifest, error) {
	m, ok := c.byName[name]
	if !ok {
		return m, problem.New(intents.MalformedArgs, "/name", "is no tool that you may use: take a name from search_tools")
	}
	return m, nil
}

// pinned returns the skills that are listed whatever their number, and logs patterns that match none.
func (s *mcpServer) pinned(ctx context.Context, who actor, skills []catalog.Manifest) map[string]bool {
	out := map[string]bool{}
	for _, pattern := range s.servers.g.cfg.MCPPinned {
		none := true
		for _, m := range skills {
			if intents.Like(pattern, m.Name) {
				out[m.Name], none = true, false
			}
		}
		if none {
			s.servers.g.cfg.Log.WarnContext(ctx, "mcp_pinned matches no skill of this caller", slog.String("pattern", pattern), slog.String("tenant", who.tenant), slog.String("user_id", who.user))
		}
	}
	return out
}

// searchTools returns the tools that find, describe and call the skills of a caller.
func (s *mcpServer) searchTools(skills callerSkills) []server.ServerTool {
	yes, no := true, false
	call := wire.Tool{
		Name: toolCall, RawInputSchema: json.RawMessage(callSchema),
		Description: "Calls a tool by the name that search_tools returned, with arguments that match its input schema (see describe_tool).",
		Annotations: wire.ToolAnnotation{ReadOnlyHint: &no, IdempotentHint: &no, DestructiveHint: &yes},
	}
	read := readOnly(toolRead, "Calls a tool that only reads (read_only), as call_tool does.", callSchema)
	return []server.ServerTool{s.search(skills), s.describe(skills), s.callNamed(read, skills, true), s.callNamed(call, skills, false)}
}

// search finds skills by skill.find, so that it ranks as the planner's search does, and is recorded.
func (s *mcpServer) search(skills callerSkills) server.ServerTool {
	t := readOnly(toolSearch, "Finds tools by what they do. There are more tools than are listed. Then use describe_tool, and read_tool or call_tool.",
		`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"what the tool is to do, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":100,"description":"10 if absent"}},"required":["query"],"additionalProperties":false}`)
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		args := catalog.SkillFind{Limit: defaultHits}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		a, err := s.servers.skills.findSkills(ctx, c.actor, c.session, args)
		if err != nil {
			return nil, err
		}
		var found catalog.SkillFindResult
		if a.Outcome == nil || a.Outcome.Status != intents.Done {
			return c.answer(ctx, a)
		}
		if err := json.Unmarshal(a.Outcome.Result, &found); err != nil {
			return nil, err
		}
		hits := []map[string]any{}
		for _, h := range found.Skills {
			if name := skills.names[h.Name]; name != "" {
				m := skills.byName[name]
				hits = append(hits, map[string]any{"name": name, "description": visible.Cut(h.Description, hitDescription), "read_only": readsOnly(m)})
			}
		}
		return withMeta(ownResult(map[string]any{"tools": hits}), a.IntentID, a.Receipt, ""), nil
	})
}

// describe returns all that a client must know to call a skill.
func (s *mcpServer) describe(skills callerSkills) server.ServerTool {
	t := readOnly(toolDescribe, "Returns description and input schema of a tool that search_tools found.",
		`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`)
	return s.tool(t, func(_ context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			Name string `json:"name"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		m, err := skills.named(args.Name)
		if err != nil {
			return nil, err
		}
		out := map[string]any{"name": skills.names[m.Name], "description": m.Description, "input_schema": m.InputSchema, "read_only": readsOnly(m), "destructive": m.Destructive}
		if len(m.OutputSchema) > 0 {
			out["output_schema"] = m.OutputSchema
		}
		return ownResult(out), nil
	})
}

const callSchema = `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name"],"additionalProperties":false}`

// callNamed calls the skill that its arguments name. The intent names that skill: nothing after the
// gateway knows how it was called.
func (s *mcpServer) callNamed(t wire.Tool, skills callerSkills, reads bool) server.ServerTool {
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		m, err := skills.named(args.Name)
		if err != nil {
			return nil, err
		}
		if reads && !readsOnly(m) {
			return nil, problem.New(intents.MalformedArgs, "/name", "the tool does not only read: use call_tool")
		}
		return c.callSkill(ctx, m, args.Arguments)
	})
}

// readsOnly reports whether the operator approved a skill as one that changes nothing.
func readsOnly(m catalog.Manifest) bool { return m.Effect == catalog.Pure && !m.Destructive }

// listed returns the skills that are tools of their own: all of them, or the pinned ones beside the
// tools that find the others.
func (s *mcpServer) listed(ctx context.Context, who actor, skills []catalog.Manifest, names []string) (tools []server.ServerTool) {
	most := s.servers.g.cfg.MCPTools
	few := most < 0 || len(skills) <= most
	var pinned map[string]bool
	if !few {
		pinned, tools = s.pinned(ctx, who, skills), s.searchTools(newCallerSkills(skills, names))
	}
	for i, m := range skills {
		if !few && !pinned[m.Name] {
			tools = append(tools, s.unlisted(names[i]))
			continue
		}
		if t := s.skill(m, names[i]); wire.ValidateParamHeaderAnnotations(&t.Tool) == nil {
			tools = append(tools, t)
		}
	}
	return slices.Clip(tools)
}

// unlistedTool marks a tool that is in no list, and is there to say how it is called.
const unlistedTool = "not listed"

// unlisted is a tool that search_tools finds, for a client that calls it by its own name.
func (s *mcpServer) unlisted(name string) server.ServerTool {
	return s.tool(wire.Tool{Name: name, Description: unlistedTool, RawInputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcpCall) (*wire.CallToolResult, error) {
		p := problem.New(intents.MalformedArgs, "/name", "the tool is not listed, and is not called by its own name")
		p.Hint = fmt.Sprintf(`use call_tool: {"name": %q, "arguments": {…}}; describe_tool has its input schema`, name)
		return nil, p
	})
}

// withoutUnlisted leaves out what is not listed, from a list.
func withoutUnlisted(ctx context.Context, tools []wire.Tool) []wire.Tool {
	if r, _ := ctx.Value(mcpRequestKey{}).(*mcpRequest); r == nil || !r.lists {
		return tools // one that is called
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t wire.Tool) bool { return t.Description == unlistedTool })
}
