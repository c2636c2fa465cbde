package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// toolRow is a row of agent_messages: the call of a tool that an agent made in a session,
// or what came of it. People read them; no prompt has them. What an agent does that
// another one asked makes no rows, but the ask does.
type toolRow struct {
	ID        string   `json:"message_id"`
	TenantID  string   `json:"tenant_id"`
	UserID    string   `json:"user_id"`
	SessionID string   `json:"session_id"`
	TurnID    string   `json:"turn_id,omitempty"`
	PlanID    string   `json:"plan_id,omitempty"`
	Type      string   `json:"message_type"`
	Content   *string  `json:"content"`
	ToolCalls toolCall `json:"tool_calls"`
	TraceID   string   `json:"trace_id,omitempty"`
	Position  int64    `json:"position"`
	CreatedAt string   `json:"created_at"`
}

type toolCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
	ID   string          `json:"id"` // <step>.<reply>.<index>
}

// The types of rows, and the name of the tool that asks agents.
const (
	rowOfCall     = "tool_call"
	rowOfResponse = "tool_response"
	typeAsk       = "agent.ask"
)

// maxShown bounds the content of a row, in bytes. The record has all of it.
const maxShown = 16 << 10

// calls says whether an order is the call of a tool that makes rows.
func calls(s state.Order) bool {
	return s.Context.Call != "" && s.Context.Ask == "" && s.Context.SessionID != ""
}

// called is the call that an order was, without its arguments.
func called(s state.Order) toolCall {
	c := toolCall{Name: s.Type, ID: fmt.Sprintf("%d.%s", s.Context.Step, s.Context.Call)}
	if s.Skill != "" {
		c.Name = s.Skill
	}
	if s.Type == typeAsk {
		c.Name = "ask_agent"
	}
	return c
}

// writeTool gathers the row of an order that is a call, or that ends the task of an ask.
func (r *Recorder) writeTool(s state.Order, rec storage.Record) error {
	switch {
	case s.Decision.Verdict == intents.Deny || s.Erased:
		return nil
	case calls(s):
		c := called(s)
		c.Args = s.Args
		if s.Type == typeAsk {
			var a struct {
				Agent string          `json:"agent"`
				Input json.RawMessage `json:"input"`
			}
			_ = json.Unmarshal(s.Args, &a) // recorded arguments matched their schema
			c.Args, _ = json.Marshal(a)    // of what was JSON
		}
		return r.writeToolRow(s, rowOfCall, c, nil, rec)
	case s.Type == "step.finish":
		var a catalog.StepFinish
		_ = json.Unmarshal(s.Args, &a)
		t, ok := r.fold.View().Task(s.Tenant + "/" + a.TaskID)
		if !ok || t.Ask == "" || t.Session == "" {
			return nil
		}
		content := a.Reply
		if content == "" {
			content = a.Status + ": " + a.Reason
		}
		return r.writeToolRow(s, rowOfResponse, toolCall{Name: "ask_agent", ID: fmt.Sprintf("%d.%s", t.Step, t.Ask)}, &content, rec)
	}
	return nil
}

// writeToolOutcome gathers the row of what came of a call. The answer to an ask is the end
// of its task.
func (r *Recorder) writeToolOutcome(s state.Order, out intents.Outcome, rec storage.Record) error {
	content := string(out.Result)
	if out.Status != intents.Done && out.Reason != storage.ErasedReason {
		content = string(out.Code) + ": " + out.Reason
	}
	if !calls(s) || s.Erased || content == "" || s.Type == typeAsk && out.Status == intents.Done {
		return nil
	}
	return r.writeToolRow(s, rowOfResponse, called(s), &content, rec)
}

func (r *Recorder) writeToolRow(s state.Order, typ string, c toolCall, content *string, rec storage.Record) error {
	if content != nil && len(*content) > maxShown {
		*content = strings.ToValidUTF8((*content)[:maxShown], "") + "…"
	}
	row := toolRow{
		ID: toolRowID(s, typ), TenantID: s.Tenant, UserID: s.User, SessionID: s.Context.SessionID, TurnID: s.Context.TurnID, PlanID: s.Context.PlanID,
		Type: typ, Content: content, ToolCalls: c, TraceID: s.TraceID, Position: rec.Position, CreatedAt: rec.At.UTC().Format(time.RFC3339Nano),
	}
	body, err := json.Marshal(row)
	if err == nil {
		r.batch.messages.create(s.Tenant, storage.Document{ID: row.ID, Position: rec.Position, Body: body})
	}
	return err
}

func toolRowID(s state.Order, typ string) string { return fmt.Sprintf("t_%012d_%s", s.Recorded, typ) }

// eraseTools removes the rows that hold what is erased of an order.
func (r *Recorder) eraseTools(ctx context.Context, of state.Order, parts []string) error {
	for part, types := range map[string][]string{catalog.ErasesOrder: {rowOfCall, rowOfResponse}, catalog.ErasesResult: {rowOfResponse}} {
		if !slices.Contains(parts, part) {
			continue
		}
		for _, typ := range types {
			if err := r.patiently(ctx, storage.IndexMessages, func() error {
				return r.documents.Delete(ctx, of.Tenant, storage.IndexMessages, toolRowID(of, typ))
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
