package gateway

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/state/agents"
)

const mcpInstructions = `Each call is decided by policy and recorded. A result with "status": "held" waits until people approve the call at its url: do not call again, read the outcome with get_result. ` +
	`"status": "by_reference" stands for a large result, which read_lines reads.`

// Names of tools that are no skills.
const (
	toolRunTask   = "run_task"
	toolGetResult = "get_result"
	toolReadLines = "read_lines"
)

// mcpRetry is the interval after which tools of an unreachable server are requested again.
const mcpRetry = 30 * time.Second

// renew rebuilds tools and resources if those that the caller may use have changed, and notifies
// all its clients.
func (s *mcpServer) renew(ctx context.Context) error {
	s.renewing.Lock()
	defer s.renewing.Unlock()
	who := s.caller()
	may, err := askRouter[bus.UserReply](ctx, s.servers.g.cfg.Bus, bus.DirectoryUser, bus.UserRequest{
		Tenant: who.tenant, UserID: who.user, KeyID: who.keyID, Roles: who.roles, Agents: true, Skills: true, Capability: openCapability(),
	})
	if err != nil {
		return err
	}
	if may.Disabled {
		return problem.New(intents.RBACForbidden, "/user_id", "the user is disabled")
	}
	documents, err := s.servers.documentsOf(ctx, who.tenant)
	if err != nil {
		return err
	}
	raw, err := json.Marshal([]any{may.Skills, may.Agents, may.May, digests(documents)})
	if err != nil {
		return err
	}
	offer, now := intents.Digest(raw), s.servers.g.cfg.Now()
	if offer == s.offer && now.Before(s.until) {
		return nil
	}
	skills, err := s.servers.skills.clientSkills(ctx, who)
	if err != nil {
		return err
	}
	var pins []json.RawMessage
	_ = json.Unmarshal(may.Skills, &pins) // valid: they were marshalled
	same := offer == s.offer && len(skills) == s.shown
	s.offer, s.shown, s.until = offer, len(skills), now.Add(mcpIdle)
	if len(skills) < len(pins) { // a server is down
		s.until = now.Add(mcpRetry)
	}
	if same {
		return nil
	}
	tools := []server.ServerTool{s.getResult(), s.readLines()}
	if may.May {
		tools = append(tools, s.runTask(), s.handleMessage())
		tools = append(tools, s.asks(ctx, who, may.Agents)...)
	}
	taken := map[string]bool{}
	for _, t := range tools {
		taken[t.Tool.Name] = true
	}
	for _, name := range agents.ClientTools { // whether they are there or not: a skill keeps its name
		taken[name] = true
	}
	callable, readers := s.readersOf(skills)
	tools = append(tools, s.listed(ctx, who, callable, agents.WireNames(callable, taken))...)
	s.rpc.SetTools(tools...)
	s.documents, s.readers, s.offers = documents, readers, offers{}
	s.offerContent()
	return nil
}

// openCapability returns the capability required to open a plan.
func openCapability() string {
	row, _ := catalog.Builtin().Lookup("plan.open")
	return row.Capability
}

// skill returns an approved skill as a tool.
func (s *mcpServer) skill(m catalog.Manifest, name string) server.ServerTool {
	t := wire.Tool{Name: name, Description: m.Description, RawInputSchema: wireInput(m.InputSchema), RawOutputSchema: wireOutput(m.OutputSchema)}
	pure, repeatable := readsOnly(m), m.Effect != catalog.Once
	t.Annotations = wire.ToolAnnotation{ReadOnlyHint: &pure, IdempotentHint: &repeatable, DestructiveHint: &m.Destructive}
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		return c.callSkill(ctx, m, c.req.Params.RawArguments)
	})
}

// callSkill calls a skill with arguments, an object or nothing.
func (c *mcpCall) callSkill(ctx context.Context, m catalog.Manifest, args json.RawMessage) (*wire.CallToolResult, error) {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	c.server, _, _ = strings.Cut(m.Name, ".")
	call := clientCall{Session: c.session, Request: c.id, Skill: m.Name, Args: args}
	if c.token != nil {
		call.Progress = func(d bus.StatusData) { c.report(ctx, d.Message, d.Progress, d.Total) }
	}
	a, err := c.s.servers.skills.callSkill(ctx, c.actor, call)
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, a)
}

// wireInput returns a skill's input schema as shown to clients. MCP wants its type said, and SDKs
// refuse a list with one tool that does not say it.
func wireInput(schema json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil || root["type"] != nil {
		return schema
	}
	if root == nil {
		root = make(map[string]json.RawMessage)
	}
	root["type"] = json.RawMessage(`"object"`)
	raw, _ := json.Marshal(root) // marshalled from JSON
	return raw
}

// ownRefs matches references that stay valid if the schema becomes part of another one, because
// its definitions are its own; anyRef matches every keyword that refers to something, or is
// referred to.
var (
	ownRefs = regexp.MustCompile(`"\$ref":"#/(\$defs|definitions)/`)
	anyRef  = regexp.MustCompile(`"\$(ref|dynamicRef|recursiveRef|id|anchor|dynamicAnchor)":`)
)

// ownAnswer is the schema of writ's own answers instead of a skill's.
const ownAnswer = `{"type":"object","properties":{"status":{"enum":["held","by_reference","running","error","incomplete"]}},"required":["status"]}`

// wireOutput returns a skill's output schema as shown to clients: they check results, and writ
// has answers of its own. A schema that cannot be part of another one, or is not of objects, is
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
	raw, _ := json.Marshal(out) // marshalled from JSON
	return raw
}

// runTask has a request executed by a plan of the planner's, or of run_agent's.
func (s *mcpServer) runTask() server.ServerTool {
	return s.turnTool(toolRunTask, "Has a task carried out: writ plans it, uses the tools that the user may use, and answers.", s.servers.g.cfg.RunAgent)
}

// asks returns tools for the agents that the caller may run. Without the descriptions of those in
// force they have none.
func (s *mcpServer) asks(ctx context.Context, who actor, names []string) (out []server.ServerTool) {
	about := map[string]string{}
	rows, _ := s.servers.g.schemas(ctx, who, "")
	for _, r := range rows {
		var d struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(r.Schema, &d)
		about[r.Name] = d.Description
	}
	for _, name := range names {
		out = append(out, s.turnTool(agents.WireWord(agents.AskTool+name, name), strings.TrimSpace("Asks the agent "+name+". "+about[name]), name))
	}
	return out
}

const taskSchema = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"what is to be done or answered, with all that must be known for it"}},"required":["task"],"additionalProperties":false}`

func (s *mcpServer) turnTool(name, about, agent string) server.ServerTool {
	t := wire.Tool{Name: name, Description: about, RawInputSchema: json.RawMessage(taskSchema)}
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			Task string `json:"task"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		if err := checkMessage(args.Task, "/task"); err != nil {
			return nil, err
		}
		if err := s.servers.g.limit.meter(c.actor); err != nil {
			return nil, err
		}
		request := &catalog.Request{Digest: intents.Digest([]byte("mcp\n" + c.session + "\n" + c.id + "\n" + agent + "\n" + args.Task)), Kind: catalog.RequestKey}
		return c.run(ctx, agent, turnRequest{message: args.Task, request: request})
	})
}

func readOnly(name, about, schema string) wire.Tool {
	yes, no := true, false
	return wire.Tool{
		Name: name, Description: about, RawInputSchema: json.RawMessage(schema),
		Annotations: wire.ToolAnnotation{ReadOnlyHint: &yes, IdempotentHint: &yes, DestructiveHint: &no, OpenWorldHint: &no},
	}
}

// getResult reads the outcome of a call, or of a plan. It signs no new intent.
func (s *mcpServer) getResult() server.ServerTool {
	t := readOnly(toolGetResult, "Reads what became of a call that was held, or was no longer waited for, by its intent_id; or of a plan, by its plan_id.",
		`{"type":"object","properties":{"intent_id":{"type":"string"},"plan_id":{"type":"string"}},"minProperties":1,"maxProperties":1,"additionalProperties":false}`)
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			IntentID string `json:"intent_id"`
			PlanID   string `json:"plan_id"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		g := s.servers.g
		if args.PlanID == "" {
			a, err := g.readIntent(ctx, c.actor, args.IntentID)
			if err != nil {
				return nil, err
			}
			if a.Outcome == nil && a.Code == intents.ApprovalRequired {
				h := pendingApprovalOf(a)
				return withMeta(c.waits(h), a.IntentID, a.Receipt, ""), nil
			}
			if a.Outcome == nil && (a.Code == intents.InFlight || a.Code == intents.OK) {
				if a, err = c.outcome(ctx, a.IntentID); err != nil {
					return nil, err
				}
			}
			return c.answer(ctx, a)
		}
		v, err := g.viewPlan(ctx, c.actor, args.PlanID)
		if err != nil {
			return nil, err
		}
		if v.Status.Ended() {
			t, reply, err := g.join(ctx, c.actor, v.PlanID)
			if err != nil {
				return nil, err
			}
			return c.follow(ctx, t, reply)
		}
		return ownResult(map[string]any{"status": mcpRunning, "plan_id": v.PlanID}), nil
	})
}

// readLines reads part of a large result, as long as the plan of its call has its file.
func (s *mcpServer) readLines() server.ServerTool {
	t := readOnly(toolReadLines, `Reads lines of a large result ("status": "by_reference"): from is its intent_id, start counts from 0.`,
		`{"type":"object","properties":{"from":{"type":"string"},"start":{"type":"integer","minimum":0},"n":{"type":"integer","minimum":1,"maximum":1000}},"required":["from","start","n"],"additionalProperties":false}`)
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			From  string `json:"from"`
			Start int    `json:"start"`
			N     int    `json:"n"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		a, err := s.servers.g.readIntent(ctx, c.actor, args.From)
		if err != nil {
			return nil, err
		}
		var called catalog.SkillCallResult
		if a.Outcome == nil || json.Unmarshal(a.Outcome.Result, &called) != nil || called.Reference == nil {
			return nil, problem.New(intents.MalformedArgs, "/from", "is no result that came by reference")
		}
		if a, err = s.servers.skills.clientLines(ctx, c.actor, c.session, catalog.ReadLines{FileID: called.FileID, Start: args.Start, N: args.N}); err != nil {
			return nil, err
		}
		return c.answer(ctx, a)
	})
}

// skillScheme and the id of a skill make the URI of its document.
const skillScheme = "skill://"

// documentsOf returns the documents of skills of a tenant.
func (s *mcpServers) documentsOf(ctx context.Context, tenant string) ([]agents.SkillDocument, error) {
	if s.g.cfg.Registry == nil {
		return nil, nil
	}
	return s.g.cfg.Registry.SkillDocuments(ctx, tenant)
}

// digests returns those of the documents' texts.
func digests(documents []agents.SkillDocument) (out []string) {
	for _, d := range documents {
		out = append(out, intents.Digest([]byte(d.Text)))
	}
	return out
}

// resources returns documents as resources.
func resources(documents []agents.SkillDocument) (out []server.ServerResource) {
	for _, d := range documents {
		text := wire.TextResourceContents{URI: skillScheme + d.ID, MIMEType: "text/markdown", Text: d.Text}
		out = append(out, server.ServerResource{
			Resource: wire.Resource{URI: text.URI, Name: d.ID, Title: d.Title, Description: d.Capability, MIMEType: text.MIMEType},
			Handler: func(context.Context, wire.ReadResourceRequest) ([]wire.ResourceContents, error) {
				return []wire.ResourceContents{text}, nil
			},
		})
	}
	return out
}
