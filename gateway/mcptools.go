package gateway

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem"
)

const mcpInstructions = `Each call is decided by policy and recorded. A result with "status": "held" waits until people approve the call at its url: do not call again, read the outcome with get_result. ` +
	`"status": "by_reference" stands for a large result, which read_lines reads.`

// Names of tools that are no skills.
const (
	toolRunTask   = "run_task"
	toolAsk       = "ask_" // and the name of an agent
	toolGetResult = "get_result"
	toolReadLines = "read_lines"
)

// mcpAgain is when tools are looked for again whose server did not answer.
const mcpAgain = 30 * time.Second

// renew makes tools and resources anew if those that the caller may use have changed, and
// tells all its clients so.
func (s *mcpServer) renew(ctx context.Context) error {
	s.renewing.Lock()
	defer s.renewing.Unlock()
	who := s.caller()
	may, err := ask[bus.UserReply](ctx, s.of.g.cfg.Bus, bus.DirectoryUser, bus.UserRequest{
		Tenant: who.tenant, UserID: who.user, KeyID: who.keyID, Roles: who.roles, Agents: true, Skills: true, Capability: openCapability(),
	})
	if err != nil {
		return err
	}
	if may.Disabled {
		return problem.New(intents.RBACForbidden, "/user_id", "the user is disabled")
	}
	documents, err := s.of.documentsOf(ctx, who.tenant)
	if err != nil {
		return err
	}
	raw, err := json.Marshal([]any{may.Skills, may.Agents, may.May, digests(documents)})
	if err != nil {
		return err
	}
	offer, now := intents.Digest(raw), s.of.g.cfg.Now()
	if offer == s.offer && now.Before(s.until) {
		return nil
	}
	skills, err := s.of.skills.clientSkills(ctx, who)
	if err != nil {
		return err
	}
	var pins []json.RawMessage
	_ = json.Unmarshal(may.Skills, &pins) // as they were marshalled
	same := offer == s.offer && len(skills) == s.shown
	s.offer, s.shown, s.until = offer, len(skills), now.Add(mcpIdle)
	if len(skills) < len(pins) { // a server is down
		s.until = now.Add(mcpAgain)
	}
	if same {
		return nil
	}
	tools := []server.ServerTool{s.getResult(), s.readLines()}
	if may.May {
		tools = append(tools, s.runTask())
		tools = append(tools, s.asks(ctx, who, may.Agents)...)
	}
	taken := map[string]bool{}
	for _, t := range tools {
		taken[t.Tool.Name] = true
	}
	for i, name := range agents.WireNames(skills, taken) {
		t := s.skill(skills[i], name)
		if wire.ValidateParamHeaderAnnotations(&t.Tool) == nil {
			tools = append(tools, t)
		}
	}
	s.rpc.SetTools(tools...)
	s.rpc.SetResources(resources(documents)...)
	return nil
}

// openCapability is what it takes to have a plan made.
func openCapability() string {
	row, _ := catalog.Builtin().Lookup("plan.open")
	return row.Capability
}

// skill is an approved skill as a tool.
func (s *mcpServer) skill(m catalog.Manifest, name string) server.ServerTool {
	t := wire.Tool{Name: name, Description: m.Description, RawInputSchema: m.InputSchema, RawOutputSchema: wireOutput(m.OutputSchema)}
	pure, repeatable := m.Effect == catalog.Pure && !m.Destructive, m.Effect != catalog.Once
	t.Annotations = wire.ToolAnnotation{ReadOnlyHint: &pure, IdempotentHint: &repeatable, DestructiveHint: &m.Destructive}
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		args := c.req.Params.RawArguments
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		a, err := s.of.skills.callSkill(ctx, c.actor, clientCall{Session: c.session, Request: c.id, Skill: m.Name, Args: args})
		if err != nil {
			return nil, err
		}
		return c.answer(ctx, a)
	})
}

// ownRefs are references that hold where the schema is a part of another, whose definitions
// are its own; anyRef is each keyword that refers to something, or is referred to.
var (
	ownRefs = regexp.MustCompile(`"\$ref":"#/(\$defs|definitions)/`)
	anyRef  = regexp.MustCompile(`"\$(ref|dynamicRef|recursiveRef|id|anchor|dynamicAnchor)":`)
)

// ownAnswer is what writ itself answers instead of a skill.
const ownAnswer = `{"type":"object","properties":{"status":{"enum":["held","by_reference","running","error","incomplete"]}},"required":["status"]}`

// wireOutput is a skill's output schema as clients are shown it: they check results, and writ
// has answers of its own. A schema that cannot be a part of another, or is none of objects, is
// left out.
func wireOutput(schema json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	canonical, err := intents.Canonical(schema)
	if err != nil || json.Unmarshal(canonical, &root) != nil || string(root["type"]) != `"object"` ||
		len(anyRef.FindAll(canonical, -1)) != len(ownRefs.FindAll(canonical, -1)) {
		return nil
	}
	out := map[string]any{"type": "object"}
	for _, name := range []string{"$schema", "$defs", "definitions"} {
		if part, ok := root[name]; ok {
			out[name] = part
			delete(root, name)
		}
	}
	out["anyOf"] = []any{root, json.RawMessage(ownAnswer)}
	raw, _ := json.Marshal(out) // of JSON
	return raw
}

// runTask has a request carried out by a plan of the planner's, or of run_agent's.
func (s *mcpServer) runTask() server.ServerTool {
	return s.turnTool(toolRunTask, "Has a task carried out: writ plans it, uses the tools that the user may use, and answers.", s.of.g.cfg.RunAgent)
}

// asks are the agents that the caller may run. Without the descriptions of those in force
// they have none.
func (s *mcpServer) asks(ctx context.Context, who actor, names []string) (out []server.ServerTool) {
	about := map[string]string{}
	rows, _ := s.of.g.schemas(ctx, who, "")
	for _, r := range rows {
		var d struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(r.Schema, &d)
		about[r.Name] = d.Description
	}
	for _, name := range names {
		out = append(out, s.turnTool(toolAsk+name, strings.TrimSpace("Asks the agent "+name+". "+about[name]), name))
	}
	return out
}

const taskSchema = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"what is to be done or answered, with all that must be known for it"}},"required":["task"],"additionalProperties":false}`

func (s *mcpServer) turnTool(name, about, agent string) server.ServerTool {
	if agent == agents.Planner {
		agent = ""
	}
	t := wire.Tool{Name: name, Description: about, RawInputSchema: json.RawMessage(taskSchema)}
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			Task string `json:"task"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		return c.run(ctx, agent, args.Task)
	})
}

func readOnly(name, about, schema string) wire.Tool {
	yes, no := true, false
	return wire.Tool{
		Name: name, Description: about, RawInputSchema: json.RawMessage(schema),
		Annotations: wire.ToolAnnotation{ReadOnlyHint: &yes, IdempotentHint: &yes, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

// mcpCall is one call of a tool.
type mcpCall struct {
	*mcpRequest
	teller
	s       *mcpServer
	req     wire.CallToolRequest
	session string
}

// tool makes a tool of what it does. An error is a result that says what to do, since only
// results come before a model's eyes.
func (s *mcpServer) tool(t wire.Tool, do func(context.Context, *mcpCall) (*wire.CallToolResult, error)) server.ServerTool {
	return server.ServerTool{Tool: t, Handler: func(ctx context.Context, req wire.CallToolRequest) (*wire.CallToolResult, error) {
		r, _ := ctx.Value(mcpRequestKey{}).(*mcpRequest)
		c := &mcpCall{mcpRequest: r, s: s, req: req, session: s.alone}
		if err := s.of.meter(c.actor); err != nil {
			return refusal(err), nil
		}
		if session := server.ClientSessionFromContext(ctx); session != nil && session.SessionID() != "" {
			c.session = session.SessionID()
		}
		switch {
		case c.id != "":
		case c.rpc == "":
			c.id = `"` + newID("call") + `"`
		default:
			c.id, c.over = s.repeats.begin(c.session, c.rpc, req.Params, t.Annotations.ReadOnlyHint != nil && *t.Annotations.ReadOnlyHint)
		}
		stop := c.progress(ctx)
		defer stop()
		var result *wire.CallToolResult
		var err error
		if req.Params.RequestState != "" {
			result, err = c.resumed(ctx)
		} else {
			result, err = do(ctx, c)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = problem.New(intents.InFlight, "", "the client no longer waits; what was recorded goes on")
			}
			return refusal(err), nil
		}
		return result, nil
	}}
}

// arguments decodes those of a tool that is no skill.
func (c *mcpCall) arguments(into any) error {
	raw := c.req.Params.RawArguments
	if err := intents.UnmarshalStrict(raw, into); err != nil {
		return problem.New(intents.MalformedArgs, "", "the arguments do not match the tool's input schema")
	}
	return nil
}
