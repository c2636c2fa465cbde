package recorder_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// storedEvent is an event as stored.
type storedEvent struct {
	Type      string         `json:"event_type"`
	TenantID  string         `json:"tenant_id"`
	UserID    string         `json:"user_id"`
	SessionID string         `json:"session_id"`
	PlanID    string         `json:"plan_id"`
	TaskID    string         `json:"task_id"`
	SkillID   string         `json:"skill_id"`
	Payload   map[string]any `json:"payload"`
	Position  int64          `json:"position"`
	Seq       int            `json:"seq"`
	IntentID  string         `json:"intent_id"`
}

// eventsOf a plan, in order, without its log.
func eventsOf(t *testing.T, d storage.Documents, plan string) []storedEvent {
	t.Helper()
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Terms: map[string][]string{"plan_id": {plan}}, Sort: "event_id", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var out []storedEvent
	for _, doc := range page.Documents {
		var e storedEvent
		if err := json.Unmarshal(doc.Body, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != catalog.EventLine {
			out = append(out, e)
		}
	}
	return out
}

func types(events []storedEvent) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// find the first event of a type.
func find(t *testing.T, events []storedEvent, typ string) storedEvent {
	t.Helper()
	i := slices.IndexFunc(events, func(e storedEvent) bool { return e.Type == typ })
	if i < 0 {
		t.Fatalf("no %s among %v", typ, types(events))
	}
	return events[i]
}

// members of a payload, which must all exist.
func members(t *testing.T, e storedEvent, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, ok := e.Payload[n]; !ok {
			t.Errorf("%s has no %s: %v", e.Type, n, e.Payload)
		}
	}
}

// The timeline of a whole turn.
func TestEventsOfATurn(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.TwoSteps()
	f.caughtUp()
	f.stop()
	events := eventsOf(t, d, routertest.PlanID("plan_1"))
	want := []string{
		"user_message.received", "subagent_a.spawned", "plan.received", "plan.persisted",
		"subagent_b.spawned", "step_1.started", "skill.called", "python_script.executed", "memory.written", "memory.upsert", "subagent.finish", "step_1.complete",
		"subagent_b.spawned", "step_2.started", "skill.called", "memory.written", "memory.upsert", "subagent.finish", "step_2.complete",
		"plan.complete", "reply.sent",
	}
	if diff := cmp.Diff(want, types(events)); diff != "" {
		t.Fatal(diff)
	}
	for _, e := range events {
		if e.TenantID != "default" || e.UserID != "ana" || e.SessionID != routertest.Session || e.IntentID == "" || e.Position == 0 {
			t.Errorf("%+v", e)
		}
	}
	members(t, find(t, events, "subagent_a.spawned"), "task_id", "mode")
	members(t, find(t, events, "plan.received"), "plan_id", "steps")
	members(t, find(t, events, "plan.persisted"), "status")
	members(t, find(t, events, "step_1.started"), "task_id", "skill", "step_index")
	called := find(t, events, "skill.called")
	members(t, called, "skill_id", "input_size_bytes", "response_size_bytes", "duration_ms")
	if called.SkillID != "feed" || called.TaskID == "" {
		t.Errorf("%+v", called)
	}
	members(t, find(t, events, "memory.written"), "key", "size_bytes", "validated", "lock_wait_ms")
	members(t, find(t, events, "memory.upsert"), "key")
	members(t, find(t, events, "subagent.finish"), "status", "duration_ms", "memory_key", "task_id")
	members(t, find(t, events, "step_2.complete"), "task_id", "step_index")
	members(t, find(t, events, "plan.complete"), "replan_count")
}

// Replans and failures.
func TestEventsOfFailures(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("feed", catalog.Once)
	p := w.Begun("p1", "feed")
	insufficient := p.Started(1)
	w.OK(insufficient.Intent("step.finish", catalog.StepFinish{TaskID: insufficient.TaskID, Status: "insufficient", Completed: json.RawMessage("null"), Reason: "no rows", Suggestion: "ask another"}))
	w.Want(p.Plan(routertest.Steps(2, "feed")), intents.OK)
	w.Bus.On("write_memory", routertest.Always(intents.Report{
		Status: intents.Failed, Code: intents.ContractViolation, Reason: "no array",
		Events: []intents.ReportedEvent{routertest.Event("contract_violation", `{"expected_shape":"array<number>","actual_shape":"string","step_index":1}`)},
	}))
	w.Want(p.Started(2).Write("result"), intents.ContractViolation)
	w.Want(p.Plan(routertest.Steps(3, "feed")), intents.OK)
	late := p.Started(3)
	w.OK(late.Intent("step.finish", catalog.StepFinish{TaskID: late.TaskID, Status: "failed", Reason: "the feed took too long", Cause: catalog.SkillTimeout}))
	w.Want(p.Plan(routertest.Steps(4, "feed")), intents.OK)
	last := p.Started(4)
	w.Want(last.Call("feed", `{}`), intents.OK)
	w.Want(last.Finish("failed", "", "skill_timeout"), intents.OK)
	w.Want(p.Fail(), intents.OK)
	f.caughtUp()
	f.stop()
	events := eventsOf(t, d, routertest.PlanID("p1"))
	want := []string{
		"user_message.received", "subagent_a.spawned", "plan.received", "plan.persisted",
		"subagent_b.spawned", "step_1.started", "subagent.insufficient", "subagent.finish", "step_1.failed", "replan.triggered", "subagent_a.spawned",
		"plan.received", "plan.revised", "plan.persisted",
		"subagent_b.spawned", "step_2.started", "contract_violation", "step_2.failed", "intent.failed", "replan.triggered", "subagent_a.spawned",
		"plan.received", "plan.revised", "plan.persisted",
		"subagent_b.spawned", "step_3.started", "subagent.finish", "step_3.failed", "replan.triggered", "subagent_a.spawned",
		"plan.received", "plan.revised", "plan.persisted",
		"subagent_b.spawned", "step_4.started", "skill.called", "subagent.finish", "step_4.failed", "replan.triggered",
		"plan.failed",
	}
	if diff := cmp.Diff(want, types(events)); diff != "" {
		t.Fatal(diff)
	}
	var spawned []any
	for _, e := range events {
		if e.Type == "subagent_a.spawned" {
			spawned = append(spawned, e.Payload["task_id"], e.Payload["mode"])
		}
	}
	planner := routertest.PlanID("p1") + ".planner."
	if diff := cmp.Diff([]any{planner + "1", "plan", planner + "2", "replan", planner + "3", "replan", planner + "4", "replan"}, spawned); diff != "" {
		t.Errorf("planners (-want +got):\n%s", diff)
	}
	if e := find(t, events, "subagent.insufficient"); e.Payload["reason"] != "no rows" || e.Payload["suggestion"] != "ask another" {
		t.Errorf("%+v", e)
	} else if completed, there := e.Payload["completed"]; !there || completed != nil || e.Payload["status"] != "insufficient" {
		t.Errorf("it does not say that nothing is completed: %+v", e)
	}
	for typ, want := range map[string]string{"step_1.failed": "insufficient", "step_3.failed": "skill_timeout"} {
		if e := find(t, events, typ); e.Payload["reason"] != want {
			t.Errorf("%s: %+v", typ, e)
		}
	}
	if diff := cmp.Diff([]any{2.0}, find(t, events, "plan.revised").Payload["revised_steps"]); diff != "" {
		t.Errorf("revised steps (-want +got):\n%s", diff)
	}
	members(t, find(t, events, "contract_violation"), "expected_shape", "actual_shape", "step_index")
	triggers := []string{}
	for _, e := range events {
		if e.Type == "replan.triggered" {
			members(t, e, "attempt", "failed_step")
			trigger, _ := e.Payload["trigger"].(string)
			triggers = append(triggers, trigger)
		}
	}
	if diff := cmp.Diff([]string{"insufficient", "contract_violation", "failed", "failed"}, triggers); diff != "" {
		t.Error(diff)
	}
}

// Refused, held and failed intents have events with code and rule, without a value.
func TestEventsOfRefusals(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("pay", catalog.Once)
	w.Approval(`{"once":true}`, "zoe")
	p := w.Begun("p1", "pay")
	task := p.Started(1)
	w.Want(task.Call("secret", `{"card":"4711"}`), intents.TaskScope)
	w.Want(task.Call("pay", `{"card":"4711"}`), intents.ApprovalRequired)
	w.Want(p.Cancel(w.Gateway), intents.OK)
	f.caughtUp()
	f.stop()
	events := eventsOf(t, d, routertest.PlanID("p1"))
	if e := find(t, events, "intent.denied"); e.Payload["code"] != "TASK_SCOPE" || e.Payload["type"] != "skill.call" {
		t.Errorf("%+v", e)
	}
	if e := find(t, events, "intent.held"); cmp.Diff([]any{"writ.skill.once"}, e.Payload["policy_ids"]) != "" {
		t.Errorf("%+v", e)
	}
	find(t, events, "plan.cancelled")
	for _, docs := range dump(t, d, "default") {
		for _, doc := range docs {
			if strings.Contains(string(doc.Body), "4711") && !strings.Contains(string(doc.Body), `"facts"`) {
				t.Errorf("a value of the intent: %s", doc.Body)
			}
		}
	}
}

// No intent that a key can sign stops the recorder, however odd its arguments.
func TestOddIntents(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	for _, args := range []any{
		map[string]any{"plan_id": "no/../identifier", "epoch": 1, "driver": "d"},
		map[string]any{"plan_id": strings.Repeat("x", 5000)},
		map[string]any{"plan_id": 7},
		map[string]any{},
		map[string]any{"plan_id": ""},
	} {
		w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "plan.claim", Args: args}), intents.SchemaInvalid)
	}
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: strings.Repeat("a", 64), Args: struct{}{}}), intents.UnknownIntent)
	w.Pin("feed", catalog.Pure)
	task := w.Begun("p1", "feed").Started(1)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)},
		routertest.Event("skill.called", `{"skill_id":"`+strings.Repeat("x", 200)+`"}`), routertest.Event("python_script.executed", `{"script_hash":"md5"}`),
		routertest.Event("No Event", `{}`))))
	w.Want(task.Call("feed", `{}`), intents.OK)
	w.Want(task.Finish("failed", "", strings.Repeat("é", 4096)), intents.OK)
	f.caughtUp()
	f.stop()
	if got := dump(t, d, "default"); len(got["default/agent_intents"]) < 10 {
		t.Errorf("%d intents", len(got["default/agent_intents"]))
	}
}

// The index finds the accepted intent under its intent_id, whatever was refused of the same bytes
// before or after.
func TestIndexFindsTheAcceptedIntent(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("feed", catalog.Idempotent)
	task := w.Begun("p1", "feed").Started(1)
	w.Data("skills_allow", `["other"]`)
	raw, id := w.SignID(task.CallIntent("feed", `{}`))
	w.Want(w.Send(raw), intents.PolicyDenied)
	w.Data("skills_allow", `["feed"]`)
	w.Bus.On("skill.call", nil)
	accepted := w.Want(w.Send(raw), intents.DispatchUnavailable)
	w.Want(task.Finish("failed", "", "gave up"), intents.OK)
	w.Want(w.Send(raw), intents.KeyRevoked)
	f.caughtUp()
	f.stop()
	doc, err := d.Get(t.Context(), "default", storage.IndexIntents, id)
	w.Must(err)
	var e struct {
		Position int64
		Verdict  string
	}
	w.Must(json.Unmarshal(doc.Body, &e))
	if e.Position != *accepted.Position || e.Verdict != "allow" {
		t.Errorf("%s, accepted at %d", doc.Body, *accepted.Position)
	}
}

// A refused intent may claim any plan; its event is in no trace but its own user's.
func TestRefusalsStayOutOfTraces(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Begun("p1", "feed")
	for _, user := range []string{"bob", "ana"} {
		w.Want(w.Do(routertest.Intent{
			By: w.Manager, Type: "plan.claim", User: user, Args: catalog.PlanClaim{PlanID: routertest.PlanID("p1"), Epoch: 9, Driver: "d"},
			Ctx: intents.Context{PlanID: routertest.PlanID("p1"), TaskID: "task_1"},
		}), map[string]intents.Code{"bob": intents.TaskScope, "ana": intents.MalformedArgs}[user])
	}
	f.caughtUp()
	f.stop()
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Terms: map[string][]string{"event_type": {"intent.denied"}}, Sort: "event_id"})
	w.Must(err)
	var got []string
	for _, doc := range page.Documents {
		var e struct {
			UserID string `json:"user_id"`
			PlanID string `json:"plan_id"`
			TaskID string `json:"task_id"`
		}
		w.Must(json.Unmarshal(doc.Body, &e))
		got = append(got, e.UserID+" "+e.PlanID+" "+e.TaskID)
	}
	if diff := cmp.Diff([]string{"bob  ", "ana " + routertest.PlanID("p1") + " task_1"}, got); diff != "" {
		t.Error(diff)
	}
}

// The plans that end with their user are shown as ended: a user who is disabled, or whose grants
// are revoked, has no open plan.
func TestPlansEndWithTheirUser(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Begun("p1", "feed")
	w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T09:00:00Z"}), intents.OK)
	w.Begun("p2", "feed")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}}), intents.OK)
	f.caughtUp()
	f.stop()
	for id, why := range map[string]string{routertest.PlanID("p1"): "the user's grants were revoked", routertest.PlanID("p2"): "the user was disabled"} {
		doc, err := d.Get(t.Context(), "default", storage.IndexPlans, id)
		w.Must(err)
		var p catalog.PlanView
		w.Must(json.Unmarshal(doc.Body, &p))
		if p.Status != catalog.PlanFailed || p.Failure == nil || p.Failure.Reason != why {
			t.Errorf("%s: %s %+v", id, p.Status, p.Failure)
		}
	}
}
