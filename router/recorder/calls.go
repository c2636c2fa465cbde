package recorder

import (
	"encoding/json"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// callDoc is a call of a skill in agent_skill_calls: what agent_events has in an opaque payload, as
// members that can be filtered and counted. The sizes exist if the skill was reached.
type callDoc struct {
	EventID   string         `json:"event_id"`
	IntentID  string         `json:"intent_id"`
	TenantID  string         `json:"tenant_id"`
	UserID    string         `json:"user_id"`
	SessionID string         `json:"session_id,omitempty"`
	PlanID    string         `json:"plan_id,omitempty"`
	TaskID    string         `json:"task_id,omitempty"`
	SkillID   string         `json:"skill_id"`
	Input     *int64         `json:"input_size_bytes,omitempty"`
	Response  *int64         `json:"response_size_bytes,omitempty"`
	Duration  *int64         `json:"duration_ms,omitempty"`
	Large     bool           `json:"large_response_triggered"`
	Status    intents.Status `json:"status"`
	Code      intents.Code   `json:"code,omitempty"`
	Position  int64          `json:"position"`
	TS        string         `json:"ts"`
}

// writeCall adds the row of a skill call's outcome. It is made of what stays when an intent and a
// result are erased.
func (r *Recorder) writeCall(s state.Intent, out intents.Outcome, rec storage.Record) error {
	if s.Type != "skill.call" || s.Skill == "" {
		return nil
	}
	d := callDoc{
		EventID: fmt.Sprintf("%012d", rec.Position), IntentID: s.Decision.IntentID, TenantID: s.Tenant, UserID: s.User, SessionID: s.Context.SessionID,
		PlanID: s.Context.PlanID, TaskID: s.Context.TaskID, SkillID: s.Skill, Status: out.Status, Code: out.Code,
		Position: rec.Position, TS: rec.At.UTC().Format(time.RFC3339Nano),
	}
	for _, f := range out.Events {
		var call struct {
			Input    *int64 `json:"input_size_bytes"`
			Response *int64 `json:"response_size_bytes"`
			Duration *int64 `json:"duration_ms"`
			Large    bool   `json:"large_response_triggered"`
		}
		if f.Event != "skill.called" || json.Unmarshal(f.Payload, &call) != nil {
			continue
		}
		d.Input, d.Response, d.Duration, d.Large = size(call.Input), size(call.Response), size(call.Duration), call.Large
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	r.batch.calls.create(s.Tenant, storage.Document{ID: d.EventID, Position: rec.Position, Body: body})
	return nil
}

// size is a number that an executor reported, or nil if it is negative.
func size(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}
