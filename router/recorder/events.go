package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// event is one line of the timeline of a plan or session. Payloads have sizes, names and reasons,
// never the user's text or data.
type event struct {
	typ     string
	payload map[string]any
}

// eventDoc is the document of agent_events with the intent it comes from.
type eventDoc struct {
	EventID    string `json:"event_id"`
	TenantID   string `json:"tenant_id"`
	UserID     string `json:"user_id,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	PlanID     string `json:"plan_id,omitempty"`
	TaskID     string `json:"task_id,omitempty"`
	EventType  string `json:"event_type"`
	SkillID    string `json:"skill_id,omitempty"`
	ScriptHash string `json:"script_hash,omitempty"`
	Payload    any    `json:"payload"`
	TS         string `json:"ts"`
	Position   int64  `json:"position"`
	Seq        int    `json:"seq"`
	IntentID   string `json:"intent_id,omitempty"`
}

// intentEvents are the events of an intent record. before and after are the plan before and after
// it.
func intentEvents(s state.Intent, before, after *catalog.PlanView) []event {
	if s.Decision.Verdict == intents.Deny {
		return []event{{"intent.denied", map[string]any{"type": s.Type, "code": s.Decision.Code, "policy_ids": s.Decision.PolicyIDs}}}
	}
	if s.Decision.Verdict == intents.Hold {
		return []event{
			{"intent.held", map[string]any{"type": s.Type, "policy_ids": s.Decision.PolicyIDs}},
			{"approval.requested", map[string]any{"type": s.Type, "policy_ids": s.Decision.PolicyIDs, "deadline": deadline(s)}},
		}
	}
	var out []event
	switch s.Type {
	case "plan.open":
		out = append(out, event{"user_message.received", map[string]any{"size_bytes": s.TextSize("task")}})
	case "plan.claim":
		if before != nil && before.Status == catalog.PlanPending {
			out = append(out, planner(*before, "plan"))
		}
	case "plan":
		out = append(out, planEvents(s, after)...)
	case "step":
		out = append(out, stepStarted(s, after)...)
	case "step.finish":
		out = append(out, stepFinished(s, before, after)...)
	case "plan.close":
		out = append(out, planClosed(s, after)...)
	case "hitl.approve":
		a, _ := state.ArgsOf[catalog.Approve](s)
		out = append(out, event{"approval.decided", map[string]any{"held_intent_id": cmp.Or(a.IntentID, s.Context.Cause), "decision": a.Decision, "by": s.User}})
	case "cancel":
		out = append(out, event{"plan.cancelled", map[string]any{}})
	}
	return append(out, replans(before, after)...)
}

// deadline of a held intent; empty: it is not held.
func deadline(s state.Intent) string {
	if s.Decision.Hold == nil {
		return ""
	}
	return s.Decision.Hold.Deadline
}

func planEvents(s state.Intent, after *catalog.PlanView) []event {
	a, _ := state.ArgsOf[catalog.Plan](s) // recorded arguments matched their schema
	out := []event{{"plan.received", map[string]any{"plan_id": a.PlanID, "steps": len(a.Steps)}}}
	if a.Revision > 1 {
		out = append(out, event{"plan.revised", map[string]any{"revised_steps": numbers(a.Steps), "revision": a.Revision}})
	}
	if after != nil {
		out = append(out, event{"plan.persisted", map[string]any{"status": after.Status}})
	}
	return out
}

// numbers of steps, in the plan's order.
func numbers(steps []catalog.PlanStep) []int {
	out := make([]int, len(steps))
	for i, s := range steps {
		out[i] = s.Step
	}
	return out
}

func stepStarted(s state.Intent, after *catalog.PlanView) []event {
	a, _ := state.ArgsOf[catalog.Step](s)
	skills := []string{}
	if v := stepOf(after, a.Step); v != nil {
		skills = v.Skills
	}
	return []event{
		{"subagent_b.spawned", map[string]any{"task_id": a.TaskID, "step_index": a.Step}},
		{fmt.Sprintf("step_%d.started", a.Step), map[string]any{"task_id": a.TaskID, "skill": skills, "step_index": a.Step}},
	}
}

func stepFinished(s state.Intent, before, after *catalog.PlanView) []event {
	a, _ := state.ArgsOf[catalog.StepFinish](s)
	var v *catalog.StepView
	if before != nil {
		for i := range before.Steps {
			if before.Steps[i].TaskID == a.TaskID {
				v = stepOf(after, before.Steps[i].Step)
			}
		}
	}
	if v == nil {
		return nil
	}
	finish := map[string]any{"status": a.Status, "step_index": v.Step, "task_id": a.TaskID}
	if v.StartedAt != nil {
		finish["duration_ms"] = s.At.Sub(*v.StartedAt).Milliseconds()
	}
	switch a.Status {
	case "done":
		finish["memory_key"] = a.MemoryKey
		return []event{{"subagent.finish", finish}, {fmt.Sprintf("step_%d.complete", v.Step), map[string]any{"task_id": a.TaskID, "step_index": v.Step}}}
	case "insufficient":
		return []event{
			{"subagent.insufficient", map[string]any{"status": a.Status, "completed": nil, "reason": a.Reason, "suggestion": a.Suggestion, "step_index": v.Step}},
			{"subagent.finish", finish},
			{fmt.Sprintf("step_%d.failed", v.Step), map[string]any{"reason": cmp.Or(a.Cause, a.Status), "step_index": v.Step}},
		}
	default:
		return []event{{"subagent.finish", finish}, {fmt.Sprintf("step_%d.failed", v.Step), map[string]any{"reason": cmp.Or(a.Cause, a.Reason), "step_index": v.Step}}}
	}
}

func planClosed(s state.Intent, after *catalog.PlanView) []event {
	if after == nil {
		return nil
	}
	about, sent := map[string]any{"steps": len(after.Steps), "replan_count": after.ReplanCount}, event{"reply.sent", map[string]any{"size_bytes": s.TextSize("response")}}
	switch after.Status {
	case catalog.PlanComplete:
		return []event{{"plan.complete", about}, sent}
	case catalog.PlanNeedsInput:
		return []event{{"plan.needs_input", about}, sent}
	default:
	}
	reason := ""
	if after.Failure != nil {
		reason = after.Failure.Reason
	}
	return []event{{"plan.failed", map[string]any{"reason": reason, "replan_count": after.ReplanCount}}}
}

// replans are the events of the triggers that a record added to the plan's history.
func replans(before, after *catalog.PlanView) []event {
	if after == nil {
		return nil
	}
	known := 0
	if before != nil {
		known = len(before.History)
	}
	var out []event
	for _, h := range after.History[min(known, len(after.History)):] {
		out = append(out, event{"replan.triggered", map[string]any{"attempt": h.Attempt, "failed_step": h.FailedStep, "trigger": h.Trigger}})
		if h.Attempt <= catalog.MaxReplans {
			out = append(out, planner(*after, "replan"))
		}
	}
	return out
}

// planner is the event of a planner that begins to work on a plan. The planner has no task of its
// own; task_id names the revision that it writes.
func planner(p catalog.PlanView, mode string) event {
	return event{"subagent_a.spawned", map[string]any{"task_id": fmt.Sprintf("%s.planner.%d", p.PlanID, p.Revision+1), "mode": mode}}
}

// released adds the event of a held intent that continues; an intent of the router has had its
// effect on the plan.
func (r *Recorder) released(ctx context.Context, rec storage.Record) error {
	rel, err := state.ReleaseOf(rec)
	if err != nil {
		return err
	}
	s, err := r.intent(ctx, rel.Target)
	if err != nil {
		return err
	}
	people := make([]string, 0, len(rel.Inputs.Approvals))
	for _, a := range rel.Inputs.Approvals {
		people = append(people, a.UserID)
	}
	return errors.Join(
		r.writeEvents(s, []event{{"approval.released", map[string]any{"type": s.Type, "approved_by": people}}}, rec),
		r.erased(ctx, s, rec), r.writeAgents(ctx, s, rec),
		r.writePlanOf(ctx, s.Tenant, r.planID(s), rec),
	)
}

// ofApproval puts an approval's events with those of its held intent, which it names.
func (r *Recorder) ofApproval(s state.Intent) (where state.Intent, held string) {
	var a catalog.Approve
	if s.Type != "hitl.approve" || s.Decision.Verdict != intents.Allow || json.Unmarshal(s.Args, &a) != nil {
		return s, ""
	}
	if h, ok := r.state.View().HeldFor(s.Tenant, a); ok {
		s.Context.PlanID, s.Context.SessionID, s.Context.TaskID = h.Context.PlanID, h.Context.SessionID, h.Context.TaskID
		held = h.Decision.IntentID
		s.Context.Cause = held
	}
	return s, held
}

// reports reports whether an event is one of the executor that an intent was dispatched to. The
// router accepts no other, but the reader of a log must not depend on that. Of a vendor's type only
// the vendor is known: its row may have left the catalog.
func reports(typ, event string) bool {
	if row, ok := catalog.Builtin().Lookup(typ); ok {
		return row.Reports(event)
	}
	vendor, _, _ := strings.Cut(strings.TrimPrefix(typ, "x."), ".")
	return strings.HasPrefix(typ, "x.") && (strings.HasPrefix(event, "x."+vendor+".") || strings.HasPrefix(event, "x."+vendor+"-"))
}

// outcomeEvents are the events of an outcome's report, and those of its effect on the plan.
func outcomeEvents(s state.Intent, o intents.Outcome, before, after *catalog.PlanView) []event {
	var out []event
	for _, f := range o.Events {
		if !reports(s.Type, f.Event) {
			continue
		}
		var payload map[string]any
		if json.Unmarshal(f.Payload, &payload) != nil || payload == nil {
			payload = map[string]any{}
		}
		out = append(out, event{f.Event, payload})
	}
	if s.Type == "write_memory" && o.Code == intents.ContractViolation {
		out = append(out, event{fmt.Sprintf("step_%d.failed", s.Context.Step), map[string]any{"reason": "contract_violation", "step_index": s.Context.Step}})
	}
	if o.Code == intents.ApprovalExpired {
		out = append(out, event{"approval.expired", map[string]any{"type": s.Type}})
	}
	if o.Status != intents.Done {
		out = append(out, event{"intent.failed", map[string]any{"type": s.Type, "code": o.Code, "status": o.Status}})
	}
	return append(out, replans(before, after)...)
}

func stepOf(p *catalog.PlanView, n int) *catalog.StepView {
	if p == nil {
		return nil
	}
	for i := range p.Steps {
		if p.Steps[i].Step == n {
			return &p.Steps[i]
		}
	}
	return nil
}

// writeEvents adds events, create-only under an id made from the position.
func (r *Recorder) writeEvents(s state.Intent, events []event, rec storage.Record) error {
	plan, task := r.eventOf(s)
	for i, e := range events {
		d := documentOfEvent(s, rec)
		d.EventID, d.PlanID, d.TaskID, d.EventType, d.Payload, d.Seq = eventID(rec.Position, i), plan, task, e.typ, e.payload, i
		if !strings.HasPrefix(e.typ, "x.") { // a vendor's skill_id or script_hash is not ours
			d.SkillID, _ = e.payload["skill_id"].(string)
			d.ScriptHash, _ = e.payload["script_hash"].(string)
		}
		if err := errors.Join(r.createEvent(d), r.publish(d, e.payload, rec)); err != nil {
			return err
		}
	}
	return nil
}

// documentOfEvent begins the document of an event that follows from a record about an intent.
func documentOfEvent(s state.Intent, rec storage.Record) eventDoc {
	return eventDoc{
		TenantID: s.Tenant, UserID: s.User, SessionID: s.Context.SessionID, TaskID: s.Context.TaskID,
		TS: rec.At.UTC().Format(time.RFC3339Nano), Position: rec.Position, IntentID: s.Decision.IntentID,
	}
}

// createEvent adds an event to the batch.
func (r *Recorder) createEvent(d eventDoc) error {
	body, err := json.Marshal(d)
	if err == nil {
		r.batch.events.create(d.TenantID, storage.Document{ID: d.EventID, Position: d.Position, Body: body})
	}
	return err
}

// eventOf is the plan and task whose trace has an intent's events. A refused intent may claim any:
// its events are in no trace but its own user's, so that nobody writes into another's.
func (r *Recorder) eventOf(s state.Intent) (plan, task string) {
	if s.Decision.Verdict == intents.Deny && s.Signer != intents.RoleOperator {
		if p := r.plan(s); p == nil || p.UserID != s.User {
			return "", ""
		}
	}
	return r.planID(s), s.Context.TaskID
}

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
