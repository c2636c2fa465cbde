package gateway

import (
	"cmp"
	"context"
	"encoding/json"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

// toolMessage is the tool by which another orchestrator talks to this one, as to any agent.
const toolMessage = "handle_message"

// messageArgs are the arguments of handle_message that count. The summary and the entities are what
// another classifier made of the message, and writ returns no workflow_state.
type messageArgs struct {
	Session  string         `json:"session_id"`
	Request  string         `json:"request_id"`
	Employee string         `json:"employee_id"`
	Name     string         `json:"display_name"`
	Input    string         `json:"raw_input"`
	Language string         `json:"detected_language"`
	History  []catalog.Turn `json:"turn_history"`

	Summary  string         `json:"intent_summary"`
	Entities map[string]any `json:"entities"`
	State    map[string]any `json:"workflow_state"`
}

// handleMessage is a turn of a conversation, as POST /agent/run opens it.
func (s *mcpServer) handleMessage() server.ServerTool {
	t := wire.Tool{Name: toolMessage, Description: "Takes a message of a user in a conversation, and answers as run_task does. For orchestrators.", RawInputSchema: messageSchema()}
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args messageArgs
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		if err := checkMessage(args.Input, "/raw_input"); err != nil {
			return nil, err
		}
		a, err := s.servers.g.identify(ctx, c.who, claim{User: args.Employee, Session: args.Session})
		if err != nil {
			return nil, err
		}
		q, err := args.turn()
		if err != nil {
			return nil, err
		}
		if c.who.key.MayAssertUser {
			q.transient.UserName = args.Name
		}
		c.actor = a
		id := cmp.Or(args.Request, c.session+"\n"+c.id)
		q.request = &catalog.Request{Digest: intents.Digest([]byte("message\n" + a.session + "\n" + id + "\n" + args.Input)), Kind: catalog.RequestKey}
		return c.run(ctx, s.servers.g.cfg.RunAgent, q)
	})
}

// turn is the message as a turn. A history that comes with it counts in place of the session's.
func (args messageArgs) turn() (turnRequest, error) {
	var all []chatMessage
	for _, t := range append(args.History, catalog.Turn{Role: catalog.SpeakerUser, Content: args.Input}) {
		role := "assistant"
		if t.Role == catalog.SpeakerUser {
			role = "user"
		}
		text, _ := json.Marshal(t.Content) // a text
		all = append(all, chatMessage{Role: role, Content: text})
	}
	q, err := conversation(all, "/turn_history", "")
	q.about.Locale = args.Language
	return q, err
}

// messageSchema is the schema of what writ itself sends to agents, in which only the message is
// required.
func messageSchema() json.RawMessage {
	var doc map[string]any
	if s, err := schemas.Lookup(schemas.Base + toolMessage + ".json"); err == nil {
		_ = json.Unmarshal(s.Source(), &doc)
	}
	for _, name := range []string{"$schema", "$id", "title", "description"} {
		delete(doc, name)
	}
	doc["required"] = []string{"raw_input"}
	raw, _ := json.Marshal(doc) // from JSON
	return raw
}

// own is an answer of writ itself about a turn. Whoever sent a message also gets it as the answer of
// an agent that is not done.
func (c *mcpCall) own(text string, members map[string]any) *wire.CallToolResult {
	if c.req.Params.Name == toolMessage {
		members["content"], members["workflow_complete"] = text, false
	}
	return ownResult(members)
}

// said is the answer to a message, by the schema of agents' answers. A task that the planner has
// carried out is complete; an agent says it itself.
func (c *mcpCall) said(reply runReply) *wire.CallToolResult {
	agent := c.s.servers.g.cfg.RunAgent
	done := (agent == "" || agent == agents.Planner) && reply.Status == string(catalog.PlanComplete)
	return ownResult(map[string]any{"content": cmp.Or(reply.Response, string(reply.Data), reply.Status), "workflow_complete": done || reply.WorkflowComplete})
}
