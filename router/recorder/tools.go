package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// The types of rows in agent_messages for the calls of tools that an agent makes in a
// session, and for what came of them. No prompt has them. What an agent does that another
// one asked makes no rows, but the ask does.
const (
	rowOfCall     = "tool_call"
	rowOfResponse = "tool_response"
)

// maxShown bounds the content of a row, in bytes. The record has all of it.
const maxShown = 16 << 10

// toolCall is what a row says of its call.
type toolCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
	ID   string          `json:"id"` // <step>.<reply>.<index>
}

// calledBy is the call that made an order; false: no rows are made of it.
func calledBy(s state.Order) (toolCall, bool) {
	c := toolCall{Name: cmp.Or(s.Skill, tools[s.Type].name, s.Type), ID: fmt.Sprintf("%d.%s", s.Context.Step, s.Context.Call)}
	return c, s.Context.Call != "" && s.Context.Ask == "" && s.Context.SessionID != "" && !s.Erased
}

const askAgent = "ask_agent"

// tool is what a model wrote where an order of another name or with other arguments came of it.
type tool struct {
	name    string             // empty: that of the skill
	written func(recorded) any // nil: the arguments of the order
}

// recorded are the arguments of such orders.
type recorded struct {
	Agent string          `json:"agent"`
	Input json.RawMessage `json:"input"`
	Mode  string          `json:"mode"`
	Text  string          `json:"text"`
	TopK  int             `json:"top_k"`
	Q     string          `json:"q"`
	K     int             `json:"k"`
	Query string          `json:"query"`
}

// tools by the type of the order.
var tools = map[string]tool{
	"skill.call":         {"", func(a recorded) any { return a.Input }},
	intents.TypeAgentAsk: {askAgent, func(a recorded) any { return asked{a.Agent, a.Input} }},
	"memory.query":       {"search", func(a recorded) any { return searched{a.Mode, a.Text, a.TopK} }},
	"kb.search":          {"search", func(a recorded) any { return searched{"KNOWLEDGE", a.Q, a.K} }},
	"skill.find":         {"find_tools", func(a recorded) any { return map[string]string{"query": a.Query} }},
	"approval.ask":       {name: "ask_people"},
	"schedule.put":       {name: "remind_me"},
	"schedule.list":      {name: "remind_me"},
	"schedule.delete":    {name: "remind_me"},
}

type asked struct {
	Agent string          `json:"agent_name"`
	Input json.RawMessage `json:"input_text"`
}

type searched struct {
	Mode  string `json:"mode"`
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty"`
}

// argsOf a call, as the model wrote them, as far as the order has them: of a label it has the
// intent or the file that the label stood for.
func argsOf(typ string, args json.RawMessage) json.RawMessage {
	written := tools[typ].written
	if written == nil {
		return args
	}
	var a recorded
	_ = json.Unmarshal(args, &a) // recorded arguments matched their schema
	w := written(a)
	if input, ok := w.(json.RawMessage); ok {
		return input
	}
	raw, _ := json.Marshal(w) // of strings and JSON
	return raw
}

// writeTool gathers the row of an order that is a call, or that ends the task of an ask.
func (r *Recorder) writeTool(s state.Order, rec storage.Record) error {
	if s.Decision.Verdict == intents.Deny {
		return nil
	}
	if c, ok := calledBy(s); ok {
		c.Args = argsOf(s.Type, s.Args)
		return r.writeToolRow(s, rowOfCall, c, nil, rec)
	}
	var a catalog.StepFinish
	if s.Type != "step.finish" || s.Erased {
		return nil
	}
	_ = json.Unmarshal(s.Args, &a) // recorded arguments matched their schema
	t, _ := r.fold.View().Task(s.Tenant + "/" + a.TaskID)
	if t.Ask == "" || t.Session == "" {
		return nil
	}
	content := a.Reply
	if content == "" {
		content = a.Status + ": " + a.Reason
	}
	return r.writeToolRow(s, rowOfResponse, toolCall{Name: askAgent, ID: fmt.Sprintf("%d.%s", t.Step, t.Ask)}, &content, rec)
}

// writeToolOutcome gathers the row of what came of a call. The answer to an ask is the end
// of its task.
func (r *Recorder) writeToolOutcome(s state.Order, out intents.Outcome, rec storage.Record) error {
	content := string(out.Result)
	if out.Status != intents.Done && out.Reason != storage.ErasedReason {
		content = string(out.Code) + ": " + out.Reason
	}
	c, ok := calledBy(s)
	if !ok || content == "" || s.Type == intents.TypeAgentAsk && out.Status == intents.Done {
		return nil
	}
	return r.writeToolRow(s, rowOfResponse, c, &content, rec)
}

func (r *Recorder) writeToolRow(s state.Order, typ string, c toolCall, content *string, rec storage.Record) error {
	if content != nil && len(*content) > maxShown {
		*content = strings.ToValidUTF8((*content)[:maxShown], "") + "…"
	}
	row := map[string]any{
		"message_id": toolRowID(s, typ), "tenant_id": s.Tenant, "user_id": s.User, "session_id": s.Context.SessionID, "turn_id": s.Context.TurnID, "plan_id": s.Context.PlanID,
		"message_type": typ, "content": content, "tool_calls": c, "position": rec.Position, "created_at": intents.FormatTime(rec.At),
	}
	if s.TraceID != "" {
		row["trace_id"] = s.TraceID
	}
	body, err := json.Marshal(row)
	if err == nil {
		r.batch.messages.create(s.Tenant, storage.Document{ID: toolRowID(s, typ), Position: rec.Position, Body: body})
	}
	return err
}

func toolRowID(s state.Order, typ string) string { return fmt.Sprintf("t_%012d_%s", s.Recorded, typ) }

// eraseTools removes the rows that hold what is erased of an order.
func (r *Recorder) eraseTools(ctx context.Context, of state.Order, parts []string) error {
	for _, typ := range []string{rowOfCall, rowOfResponse} {
		if !slices.Contains(parts, catalog.ErasesOrder) && (typ == rowOfCall || !slices.Contains(parts, catalog.ErasesResult)) {
			continue
		}
		if err := r.patiently(ctx, storage.IndexMessages, func() error {
			return r.documents.Delete(ctx, of.Tenant, storage.IndexMessages, toolRowID(of, typ))
		}); err != nil {
			return err
		}
	}
	return nil
}
