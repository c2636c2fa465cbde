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

// The types of rows in agent_messages for the calls of tools that an agent makes in a session, and
// for their results. No prompt has them. Calls of an agent that another one asked make no rows, but
// the ask does.
const (
	rowOfCall     = "tool_call"
	rowOfResponse = "tool_response"
)

// maxShown bounds the content of a row, in bytes. The record has all of it.
const maxShown = 16 << 10

// toolCall is what a row says of its call.
type toolCall struct {
	Name string `json:"name"`
	// Skill that was called: its tool's name may be a shorter one.
	Skill string          `json:"skill,omitempty"`
	Args  json.RawMessage `json:"args,omitempty"`
	ID    string          `json:"id"` // <step>.<reply>.<index>
}

// calledBy is the call that made an intent; false: no rows are made of it.
func calledBy(s state.Intent) (toolCall, bool) {
	own, _ := catalog.Written(s.Type, nil)
	c := toolCall{Name: cmp.Or(s.Context.Tool, s.Skill, own, s.Type), Skill: s.Skill, ID: fmt.Sprintf("%d.%s", s.Context.Step, s.Context.Call)}
	return c, s.Context.Call != "" && s.Context.Ask == "" && s.Context.SessionID != "" && !s.Erased
}

const askAgent = "ask_agent"

// argsOf returns the arguments of a call, as the model wrote them, as far as the intent has them: a
// label is replaced by the intent or the file that it stood for.
func argsOf(s state.Intent, name string) json.RawMessage {
	if s.Type == "skill.call" {
		a, _ := state.ArgsOf[catalog.SkillCall](s) // recorded arguments matched their schema
		return a.Input
	}
	_, written := catalog.Written(s.Type, s.Args)
	if ask, ok := written.(catalog.AskArgs); ok && name != askAgent {
		ask.Agent = "" // the tool says it
		written = ask
	}
	if same, ok := written.(json.RawMessage); ok {
		return same
	}
	raw, _ := json.Marshal(written) // plain data
	return raw
}

// writeTool adds the row of an intent that is a call, or that ends the task of an ask.
func (r *Recorder) writeTool(s state.Intent, rec storage.Record) error {
	if s.Decision.Verdict == intents.Deny {
		return nil
	}
	if c, ok := calledBy(s); ok {
		c.Args = argsOf(s, c.Name)
		return r.writeToolRow(s, rowOfCall, c, nil, rec)
	}
	var a catalog.StepFinish
	if s.Type != "step.finish" || s.Erased {
		return nil
	}
	_ = json.Unmarshal(s.Args, &a) // recorded arguments matched their schema
	t, by := r.state.View().TaskWithTool(s.Tenant + "/" + a.TaskID)
	if t.Ask == "" || t.Session == "" {
		return nil
	}
	content := a.Reply
	if content == "" {
		content = a.Status + ": " + a.Reason
	}
	return r.writeToolRow(s, rowOfResponse, toolCall{Name: cmp.Or(by, askAgent), ID: fmt.Sprintf("%d.%s", t.Step, t.Ask)}, &content, rec)
}

// writeToolOutcome adds the row of a call's result. The answer to an ask is the end of its task.
func (r *Recorder) writeToolOutcome(s state.Intent, out intents.Outcome, rec storage.Record) error {
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

func (r *Recorder) writeToolRow(s state.Intent, typ string, c toolCall, content *string, rec storage.Record) error {
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
	if sources := r.state.SourcesOf(s.Tenant, s.Context.PlanID); len(sources) > 0 {
		row["sources"] = sources
	}
	body, err := json.Marshal(row)
	if err == nil {
		r.batch.messages.create(s.Tenant, storage.Document{ID: toolRowID(s, typ), Position: rec.Position, Body: body})
	}
	return err
}

func toolRowID(s state.Intent, typ string) string { return fmt.Sprintf("t_%012d_%s", s.Recorded, typ) }

// eraseTools removes the rows of what is erased of an intent.
func (r *Recorder) eraseTools(ctx context.Context, of state.Intent, parts []string) error {
	for _, typ := range []string{rowOfCall, rowOfResponse} {
		if !slices.Contains(parts, catalog.ErasesEnvelope) && (typ == rowOfCall || !slices.Contains(parts, catalog.ErasesResult)) {
			continue
		}
		if err := r.remove(ctx, of.Tenant, storage.IndexMessages, toolRowID(of, typ)); err != nil {
			return err
		}
	}
	return nil
}
