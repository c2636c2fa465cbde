package recorder

import (
	"encoding/json"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// publicMembers of an event's payload are numbers, names and codes. Reasons and suggestions are an
// agent's words, and shapes may quote them.
var publicMembers = []string{
	"approved_by", "attempt", "by", "code", "deadline", "decision", "duration_ms", "failed_step", "held_intent_id", "key", "lock_wait_ms", "memory_key", "mode",
	"plan_id", "policy_ids", "replan_count", "revised_steps", "revision", "size_bytes", "skill", "status", "step_index", "steps", "task_id", "trigger", "type", "validated",
}

// publish adds the parts of an event that other systems may receive.
func (r *Recorder) publish(d eventDoc, payload map[string]any, rec storage.Record) error {
	kind := catalog.EventKind(d.EventType)
	if kind == "" || r.Publish == nil {
		return nil
	}
	public := map[string]any{}
	for _, name := range publicMembers {
		if v, ok := payload[name]; ok {
			public[name] = v
		}
	}
	d.Payload = public
	body, err := json.Marshal(d)
	r.batch.public = append(r.batch.public, bus.Event{Tenant: d.TenantID, Kind: kind, ID: d.EventID, At: rec.At, Body: body})
	return err
}
