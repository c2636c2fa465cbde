package views_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/views"
)

// used is a plan in which agents used models.
func used(user string, n int, usage ...catalog.Usage) catalog.PlanView {
	v := view(user, n, catalog.PlanComplete)
	v.Usage = usage
	return v
}

func TestReports(t *testing.T) {
	docs := open(t)
	reports(t, docs, func() {})
}

// reports hold on every store. written is called before they are asked for.
func reports(t *testing.T, docs storage.Documents, written func()) {
	t.Helper()
	price := map[string]catalog.Price{"openai:m": {Input: 2, Cached: 1, Output: 10}}
	const day = 24 * 60
	put(t, docs, used("ana", 1,
		catalog.Usage{Agent: "executor", Model: "openai:m", Calls: 4, InputTokens: 900, CachedTokens: 500, OutputTokens: 10, Estimated: true, LatencyMS: 300},
		catalog.Usage{Agent: "planner", Model: "openai:m", Calls: 1, InputTokens: 100, OutputTokens: 50, LatencyMS: 100}))
	put(t, docs, used("ana", day, catalog.Usage{Agent: "planner", Model: "openai:m", Calls: 1, InputTokens: 200, OutputTokens: 30, LatencyMS: 300}))
	put(t, docs, used("ana", 2*day, catalog.Usage{Agent: "planner", Model: "openai:n", Calls: 1, InputTokens: 7, OutputTokens: 3, LatencyMS: 5}))
	put(t, docs, used("bob", 1, catalog.Usage{Agent: "planner", Model: "openai:n", Calls: 1, InputTokens: 1000, OutputTokens: 1, LatencyMS: 9}))
	evil := used("ana", 3, catalog.Usage{Agent: "planner", Model: "openai:n", Calls: 1, InputTokens: 5})
	evil.TenantID = "evil"
	put(t, docs, evil)
	failed := view("ana", 3*day, catalog.PlanFailed)
	failed.Steps[0].Skills, failed.ReplanCount = []string{"z", "a"}, catalog.MaxReplans
	for i := range catalog.MaxReplans + 1 {
		failed.History = append(failed.History, catalog.Replan{Attempt: i + 1, Trigger: "failed", FailedStep: 1, Reason: "r", RevisedAt: start})
	}
	put(t, docs, failed)
	for i, c := range []struct{ user, skill, status string }{{"ana", "a", "done"}, {"ana", "z", "failed"}, {"ana", "z", "indeterminate"}, {"ana", "z", "done"}, {"bob", "s", "failed"}} {
		call(t, docs, i, c.user, c.skill, c.status)
	}
	written()

	sum := func(user string, args catalog.PlanUsage) catalog.PlanUsageResult {
		t.Helper()
		if args.WholeTenant {
			user = ""
		}
		got, err := views.Usage(t.Context(), docs, price, "acme", user, args)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	usage := func(user string, args catalog.PlanUsage) []catalog.UsageRow { t.Helper(); return sum(user, args).Usage }
	executor := catalog.UsageRow{Agent: "executor", Model: "openai:m", Turns: 1, InputTokens: 900, CachedTokens: 500, OutputTokens: 10, Estimated: true, AvgLatencyMS: 300, Cost: new(0.0014)}
	planner := catalog.UsageRow{Agent: "planner", Model: "openai:m", Turns: 2, InputTokens: 300, OutputTokens: 80, AvgLatencyMS: 200, Cost: new(0.0014)}
	free := catalog.UsageRow{Agent: "planner", Model: "openai:n", Turns: 1, InputTokens: 7, OutputTokens: 3, AvgLatencyMS: 5}
	bobs := catalog.UsageRow{Agent: "planner", Model: "openai:n", Turns: 1, InputTokens: 1000, OutputTokens: 1, AvgLatencyMS: 9}
	both := catalog.UsageRow{Agent: "planner", Model: "openai:n", Turns: 2, InputTokens: 1007, OutputTokens: 4, AvgLatencyMS: 7}
	on := func(r catalog.UsageRow, day string) catalog.UsageRow { r.Day = day; return r }
	first := catalog.UsageRow{Agent: "planner", Model: "openai:m", Turns: 1, InputTokens: 100, OutputTokens: 50, AvgLatencyMS: 100, Cost: new(0.0007)}
	second := catalog.UsageRow{Agent: "planner", Model: "openai:m", Turns: 1, InputTokens: 200, OutputTokens: 30, AvgLatencyMS: 300, Cost: new(0.0007)}
	after := func(days int) string { return intents.FormatTime(start.AddDate(0, 0, days)) }
	for name, c := range map[string]struct {
		got, want []catalog.UsageRow
	}{
		"own":        {usage("ana", catalog.PlanUsage{}), []catalog.UsageRow{executor, planner, free}},
		"bob's":      {usage("bob", catalog.PlanUsage{}), []catalog.UsageRow{bobs}},
		"of nobody":  {usage("carl", catalog.PlanUsage{}), []catalog.UsageRow{}},
		"the tenant": {usage("carl", catalog.PlanUsage{WholeTenant: true}), []catalog.UsageRow{both, executor, planner}},
		"by day": {usage("ana", catalog.PlanUsage{ByDay: true}), []catalog.UsageRow{
			on(free, "2026-11-22"), on(second, "2026-11-21"), on(executor, "2026-11-20"), on(first, "2026-11-20"),
		}},
		"a day": {usage("ana", catalog.PlanUsage{Period: catalog.Period{Since: after(1), Until: after(2)}}), []catalog.UsageRow{second}},
		"since": {usage("ana", catalog.PlanUsage{Period: catalog.Period{Since: after(2)}}), []catalog.UsageRow{free}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}

	report := func(user string, args catalog.PlanUsage) (got catalog.PlanUsageResult) {
		t.Helper()
		got = sum(user, args)
		got.Usage = nil
		return got
	}
	worst := catalog.PlansHealth{Skills: []string{"a", "z"}, Plans: 1, Failed: 1, AvgReplans: 3, Exhausted: 1}
	for name, c := range map[string]struct{ got, want catalog.PlanUsageResult }{
		"own": {report("ana", catalog.PlanUsage{}), catalog.PlanUsageResult{
			Plans: []catalog.PlansHealth{worst, {Skills: []string{"s"}, Plans: 3}}, Skills: []catalog.SkillHealth{{Skill: "z", Calls: 3, Failed: 2}, {Skill: "a", Calls: 1, Large: 1}},
		}},
		"the tenant": {report("carl", catalog.PlanUsage{WholeTenant: true}), catalog.PlanUsageResult{
			Plans: []catalog.PlansHealth{worst, {Skills: []string{"s"}, Plans: 4}}, Skills: []catalog.SkillHealth{{Skill: "z", Calls: 3, Failed: 2}, {Skill: "s", Calls: 1, Failed: 1}, {Skill: "a", Calls: 1, Large: 1}},
		}},
		"before anything was": {
			report("ana", catalog.PlanUsage{Period: catalog.Period{Until: after(0)}}),
			catalog.PlanUsageResult{Plans: []catalog.PlansHealth{}, Skills: []catalog.SkillHealth{}},
		},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("how plans went, %s (-want +got):\n%s", name, d)
		}
	}
}

func call(t *testing.T, docs storage.Documents, n int, user, skill, status string) {
	t.Helper()
	id := fmt.Sprintf("call_%d", n)
	body, err := json.Marshal(map[string]any{
		"event_id": id, "intent_id": intents.Digest([]byte(id)), "tenant_id": "acme", "user_id": user, "skill_id": skill, "status": status,
		"large_response_triggered": skill == "a", "position": n, "ts": intents.FormatTime(start.Add(time.Minute)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := docs.Create(t.Context(), "acme", storage.IndexSkillCalls, storage.Document{ID: id, Body: body}); err != nil {
		t.Fatal(err)
	}
}

// A report never leaves plans out in silence.
func TestReportOfTooManyPlans(t *testing.T) {
	docs := open(t)
	if _, err := views.Usage(t.Context(), endless{docs}, nil, "acme", "ana", catalog.PlanUsage{}); intents.CodeOf(err) != intents.OversizedOutput {
		t.Error(err)
	}
}

// endless is a store whose searches never come to their last page.
type endless struct{ storage.Documents }

func (endless) Search(_ context.Context, _, _ string, q storage.Query) (storage.Page, error) {
	return storage.Page{Documents: slices.Repeat([]storage.Document{{Body: json.RawMessage(`{}`)}}, q.Limit), Cursor: "more"}, nil
}

func TestMessages(t *testing.T) {
	docs := open(t)
	messages(t, docs, func() {})
}

// messages are those of the user alone, newest first; an assistant's says what its turn
// used.
func messages(t *testing.T, docs storage.Documents, written func()) {
	t.Helper()
	p := used("ana", 1,
		catalog.Usage{Agent: "executor", Model: "openai:m", Calls: 4, InputTokens: 900, OutputTokens: 10, LatencyMS: 300},
		catalog.Usage{Agent: "planner", Model: "openai:n", Calls: 1, InputTokens: 100, OutputTokens: 50, LatencyMS: 100})
	put(t, docs, p)
	trace := "0123456789abcdef0123456789abcdef"
	for i, m := range []struct{ user, role, plan string }{
		{"ana", "user", p.PlanID},
		{"ana", "assistant", p.PlanID},
		{"ana", "assistant", "plan_gone"},
		{"bob", "user", ""},
		{"bob", "assistant", p.PlanID},
	} {
		row := map[string]any{
			"message_id": fmt.Sprint("m_", i), "tenant_id": "acme", "user_id": m.user, "session_id": "sess_" + m.user, "message_type": m.role,
			"content": fmt.Sprint("text ", i), "created_at": intents.FormatTime(start.Add(time.Duration(i) * time.Minute)), "trace_id": trace,
		}
		if m.plan != "" {
			row["plan_id"] = m.plan
		}
		body, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := docs.Create(t.Context(), "acme", storage.IndexMessages, storage.Document{ID: fmt.Sprint("m_", i), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	written()
	list := func(user string, args catalog.MessageList) catalog.MessageListResult {
		t.Helper()
		got, err := views.Messages(t.Context(), docs, "acme", user, args)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	message := func(i int, user, role, plan string) catalog.Message {
		return catalog.Message{
			MessageID: fmt.Sprint("m_", i), SessionID: "sess_" + user, PlanID: plan, Role: role, Content: fmt.Sprint("text ", i), TraceID: trace,
			CreatedAt: start.Add(time.Duration(i) * time.Minute),
		}
	}
	answer := message(1, "ana", "assistant", p.PlanID)
	answer.Agent, answer.Model, answer.InputTokens, answer.OutputTokens, answer.LatencyMS = "planner", "openai:n", 1000, 60, 400
	want := []catalog.Message{message(2, "ana", "assistant", "plan_gone"), answer, message(0, "ana", "user", p.PlanID)}
	first := list("ana", catalog.MessageList{Limit: 2})
	rest := list("ana", catalog.MessageList{Limit: 2, After: first.Cursor})
	if d := cmp.Diff(want, append(first.Messages, rest.Messages...)); d != "" || first.Cursor == "" || rest.Cursor != "" {
		t.Errorf("pages of ana's, cursors %q and %q (-want +got):\n%s", first.Cursor, rest.Cursor, d)
	}
	if d := cmp.Diff([]catalog.Message{message(4, "bob", "assistant", p.PlanID), message(3, "bob", "user", "")}, list("bob", catalog.MessageList{}).Messages); d != "" {
		t.Errorf("bob's, which say nothing of ana's plan (-want +got):\n%s", d)
	}
	if got := list("ana", catalog.MessageList{Period: catalog.Period{Until: intents.FormatTime(start.Add(time.Minute))}}).Messages; len(got) != 1 || got[0].MessageID != "m_0" {
		t.Errorf("before the answer: %+v", got)
	}
}
