package recorder_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// The events of a session are one timeline over its plans, in order.
func TestTimelineOfASession(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.TwoSteps()
	w.Begun("p1", "rank").Started(1)
	f.caughtUp()
	f.stop()
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Terms: map[string][]string{"session_id": {routertest.Session}}, Sort: "event_id", Limit: 1000})
	w.Must(err)
	plans := map[string]int{}
	last := storedEvent{Position: -1}
	for _, doc := range page.Documents {
		var e storedEvent
		w.Must(json.Unmarshal(doc.Body, &e))
		plans[e.PlanID]++
		if e.Position < last.Position || e.Position == last.Position && e.Seq <= last.Seq {
			t.Errorf("%s at %d.%d comes after %s at %d.%d", e.Type, e.Position, e.Seq, last.Type, last.Position, last.Seq)
		}
		last = e
	}
	if plans[routertest.PlanID("plan_1")] != len(eventsOf(t, d, routertest.PlanID("plan_1"))) || plans[routertest.PlanID("p1")] != len(eventsOf(t, d, routertest.PlanID("p1"))) || plans[routertest.PlanID("p1")] == 0 {
		t.Errorf("events by plan: %v", plans)
	}
}

// The digest of a script is a member of its own, so that it can be searched for; a failed step has
// its reason.
func TestScriptsAndReasons(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed")
	task := p.Started(1)
	hash := intents.Digest([]byte("print(1)"))
	w.Bus.On("exec_python", routertest.Always(routertest.Done(catalog.ExecPythonResult{Output: []byte(`1`)},
		routertest.Event("python_script.executed", `{"script_hash":"`+hash+`","input_rows":3,"output_rows":1,"duration_ms":1,"exit_code":0}`))))
	w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}))
	w.Want(task.Finish("failed", "", "skill_timeout"), intents.OK)
	f.caughtUp()
	f.stop()
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Terms: map[string][]string{"script_hash": {hash}}})
	w.Must(err)
	if len(page.Documents) != 1 || !strings.Contains(string(page.Documents[0].Body), `"python_script.executed"`) {
		t.Errorf("found by its hash: %d", len(page.Documents))
	}
	failed := find(t, eventsOf(t, d, routertest.PlanID("p1")), "step_1.failed")
	if diff := cmp.Diff("skill_timeout", failed.Payload["reason"]); diff != "" {
		t.Error(diff)
	}
	ran := find(t, eventsOf(t, d, routertest.PlanID("p1")), "python_script.executed")
	members(t, ran, "script_hash", "input_rows", "output_rows", "duration_ms", "exit_code")
}

// rows of an index that a query finds, decoded.
func rows[T any](t *testing.T, d storage.Documents, tenant, index string, q storage.Query) []T {
	t.Helper()
	page, err := d.Search(t.Context(), tenant, index, q)
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for _, doc := range page.Documents {
		var v T
		if err := json.Unmarshal(doc.Body, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// The calls of a tenant's skills that took the large-response path within the last seven days, and
// their number for each skill, can be found. A failed call is there with its code; a refused one
// never was a call.
func TestSkillCallsAreCounted(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("feed", catalog.Pure)
	w.Pin("menu", catalog.Pure)
	p := w.Begun("p1", "feed", "menu")
	answers := func(response int, large bool) {
		w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)}, routertest.Event("skill.called", fmt.Sprintf(
			`{"skill_id":"a name that is not asked","input_size_bytes":7,"response_size_bytes":%d,"duration_ms":4,"large_response_triggered":%t}`, response, large)))))
	}
	task := p.Started(1)
	answers(60_000, true)
	w.Want(task.Call("feed", `{"long":"ago"}`), intents.OK)
	w.Want(task.Finish("failed", "", "late"), intents.OK)
	w.Clock.Move(8 * 24 * time.Hour)
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Plan(routertest.Steps(3, "feed", "menu")), intents.OK)
	task = p.Started(3)
	large := w.Want(task.Call("feed", `{"n":1}`), intents.OK)
	answers(10, false)
	w.Want(task.Call("feed", `{"n":2}`), intents.OK)
	w.Bus.On("skill.call", routertest.Always(intents.Report{
		Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "down",
		Events: []intents.ReportedEvent{routertest.Event("skill.called", `{"input_size_bytes":-1,"duration_ms":"soon"}`)},
	}))
	w.Want(task.Call("feed", `{"n":3}`), intents.ExecutorFailed)
	w.Want(task.Call("menu", `{}`), intents.TaskScope)
	f.caughtUp()
	f.stop()

	week := storage.Query{Ranges: map[string]storage.Range{"ts": {GTE: intents.FormatTime(w.Clock.Now().AddDate(0, 0, -7))}}}
	got, err := d.Aggregate(t.Context(), "default", storage.IndexSkillCalls, week, storage.Aggregation{By: "skill_id", ValueMember: "response_size_bytes"})
	w.Must(err)
	if diff := cmp.Diff([]storage.Bucket{{Key: "feed", Count: 3, Values: 2, Sum: 60_010, Min: 10, Max: 60_000, Avg: 30_005}}, got); diff != "" {
		t.Error(diff)
	}
	week.Terms = map[string][]string{"large_response_triggered": {"true"}}
	found := rows[map[string]any](t, d, "default", storage.IndexSkillCalls, week)
	if len(found) != 1 {
		t.Fatalf("%d calls with large responses: %v", len(found), found)
	}
	for _, own := range []string{"event_id", "position", "ts"} {
		if found[0][own] == nil {
			t.Errorf("no %s", own)
		}
		delete(found[0], own)
	}
	want := map[string]any{
		"intent_id": large.IntentID, "tenant_id": "default", "user_id": "ana", "session_id": routertest.Session, "plan_id": routertest.PlanID("p1"), "task_id": task.TaskID,
		"skill_id": "feed", "input_size_bytes": 7.0, "response_size_bytes": 60_000.0, "duration_ms": 4.0, "large_response_triggered": true,
		"status": "done", "code": "OK",
	}
	if diff := cmp.Diff(want, found[0]); diff != "" {
		t.Error(diff)
	}
	week.Terms = map[string][]string{"status": {"failed"}}
	if failed := rows[map[string]any](t, d, "default", storage.IndexSkillCalls, week); len(failed) != 1 || failed[0]["code"] != "EXECUTOR_FAILED" || failed[0]["input_size_bytes"] != nil {
		t.Errorf("failed calls: %v", failed)
	}
	if others := rows[map[string]any](t, d, "system", storage.IndexSkillCalls, storage.Query{}); len(others) != 0 {
		t.Errorf("another tenant sees %v", others)
	}
}

// A step has task, skills, contract, state and times, whether it succeeded or not.
func TestStepRecord(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("feed", catalog.Pure)
	w.Pin("rank", catalog.Pure)
	p := w.Begun("p1", "feed", "rank")
	one := p.Started(1)
	began := w.Clock.Now()
	w.Clock.Move(time.Second)
	key := one.Done()
	two := p.Started(2)
	w.Want(two.Finish("failed", "", "skill_timeout"), intents.OK)
	f.caughtUp()
	f.stop()
	doc, err := d.Get(t.Context(), "default", storage.IndexPlans, routertest.PlanID("p1"))
	w.Must(err)
	var got struct {
		Steps []map[string]any `json:"steps"`
	}
	w.Must(json.Unmarshal(doc.Body, &got))
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	want := []map[string]any{
		{
			"step_index": 1.0, "step": 1.0, "task": "Do feed", "skills": []any{"feed"}, "return_spec": map[string]any{"shape": "array<number>", "reason": "the next step"},
			"status": "done", "task_id": one.TaskID, "memory_key": key, "validated": true, "started_at": at(began), "finished_at": at(began.Add(time.Second)), "revision": 1.0,
		},
		{
			"step_index": 2.0, "step": 2.0, "task": "Do rank", "skills": []any{"rank"}, "return_spec": map[string]any{"shape": "array<number>", "reason": "the next step"},
			"input_from_step": 1.0, "status": "failed", "task_id": two.TaskID, "validated": false, "failure_reason": "skill_timeout",
			"started_at": at(began.Add(time.Second)), "finished_at": at(began.Add(time.Second)), "revision": 1.0,
		},
	}
	if diff := cmp.Diff(want, got.Steps); diff != "" {
		t.Error(diff)
	}
}

// counted are the numbers of documents by a member.
func counted(t *testing.T, d storage.Documents, index, by string, q storage.Query) map[string]int64 {
	t.Helper()
	buckets, err := d.Aggregate(t.Context(), "default", index, q, storage.Aggregation{By: by})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, b := range buckets {
		out[b.Key] = b.Count
	}
	return out
}

// The inputs of the health of plans can be counted: plans by their end and by their replans, writes
// that broke a contract, calls of skills by their end.
func TestPlanHealthIsCounted(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	eventful(w)
	f.caughtUp()
	f.stop()
	for _, c := range []struct {
		index, by string
		q         storage.Query
		want      map[string]int64
	}{
		{storage.IndexPlans, "status", storage.Query{}, map[string]int64{"complete": 1, "failed": 1, "executing": 1}},
		{storage.IndexPlans, "status", storage.Query{Terms: map[string][]string{"replan_count": {"0"}, "status": {"complete", "failed"}}}, map[string]int64{"complete": 1}},
		{storage.IndexPlans, "replan_count", storage.Query{}, map[string]int64{"0": 2, "2": 1}},
		{
			storage.IndexEvents, "event_type",
			storage.Query{Terms: map[string][]string{"event_type": {"memory.written", "replan.triggered", "plan.complete"}}},
			map[string]int64{"memory.written": 2, "replan.triggered": 2, "plan.complete": 1},
		},
		{storage.IndexSkillCalls, "skill_id", storage.Query{}, map[string]int64{"earthquake_feed": 1, "rank": 1, "pay": 2}},
		{storage.IndexSkillCalls, "skill_id", storage.Query{Terms: map[string][]string{"status": {"failed"}}}, map[string]int64{"pay": 1}},
	} {
		if diff := cmp.Diff(c.want, counted(t, d, c.index, c.by, c.q)); diff != "" {
			t.Errorf("%s by %s of %+v (-want +got):\n%s", c.index, c.by, c.q, diff)
		}
	}
}

// A written event never changes: the store refuses every change of it.
func TestEventsAreAppended(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.TwoSteps()
	f.caughtUp()
	f.stop()
	want := dump(t, d, "default")
	for _, index := range []string{storage.IndexEvents, storage.IndexSkillCalls} {
		kept := want["default/"+index]
		if len(kept) == 0 {
			t.Fatalf("nothing in %s", index)
		}
		forged := kept[0]
		forged.Body = json.RawMessage(strings.Replace(string(forged.Body), `"user_id":"ana"`, `"user_id":"bob"`, 1))
		before := forged.Position
		for _, forged.Position = range []int64{before, before + 1000} {
			if err := d.Put(t.Context(), "default", index, forged); err == nil {
				t.Errorf("%s takes another document", index)
			}
			if err := d.Swap(t.Context(), "default", index, before, forged); err == nil {
				t.Errorf("%s takes another document for the one that was read", index)
			}
			if n, err := d.Create(t.Context(), "default", index, forged); err != nil || n != 0 {
				t.Errorf("%s created %d again, %v", index, n, err)
			}
			if err := d.Project(t.Context(), "default", index, storage.Projection{Created: []storage.Document{forged}}); err != nil {
				t.Error(err)
			}
		}
	}
	if diff := cmp.Diff(want, dump(t, d, "default")); diff != "" {
		t.Error(diff)
	}
}
