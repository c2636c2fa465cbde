package plans_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/plans"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func open(t *testing.T) (*sqlite.Documents, *executortest.Executor) {
	t.Helper()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), check)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	return docs, executortest.New(t, plans.Name, nil, plans.Handlers(docs, nil))
}

func check(index string, body []byte) (pointer, reason string, ok bool) {
	schema, err := schemas.Storage(index)
	if err != nil {
		return "", err.Error(), false
	}
	if v := schema.ValidateBytes(body); len(v) > 0 {
		return v[0].Pointer, v[0].Reason, false
	}
	return "", "", true
}

// view is a plan as the recorder would write it.
func view(user string, n int, status catalog.PlanStatus) catalog.PlanView {
	return catalog.PlanView{
		PlanID: fmt.Sprintf("plan_%s_%d", user, n), TenantID: "acme", UserID: user, SessionID: "sess_1", Status: status, Task: "count",
		Epoch: 1, Revision: 1, MaxSteps: catalog.MaxSteps, CreatedAt: start.Add(time.Duration(n) * time.Minute),
		Steps: []catalog.StepView{{
			PlanStep: catalog.PlanStep{Step: 1, Task: "t", Skills: []string{"s"}, ReturnSpec: catalog.ReturnSpec{Shape: "any", Reason: "r"}},
			Status:   catalog.StepDone, Revision: 1,
		}},
		History:       []catalog.Replan{},
		IntentHistory: []catalog.PastIntent{{Step: 1, IntentID: intents.Digest(nil), Type: "skill.call", Effect: catalog.Once, Args: json.RawMessage(`{}`), Status: "done"}},
	}
}

func put(t *testing.T, docs storage.Documents, v catalog.PlanView) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := docs.Put(t.Context(), v.TenantID, storage.IndexPlans, storage.Document{ID: v.PlanID, Position: 1, Body: body}); err != nil {
		t.Fatal(err)
	}
}

func event(t *testing.T, docs storage.Documents, tenant, plan, typ string, at time.Time, position, seq int) {
	t.Helper()
	id := fmt.Sprintf("e_%s_%d_%d", plan, position, seq)
	body, err := json.Marshal(map[string]any{
		"event_id": id, "tenant_id": tenant, "plan_id": plan, "event_type": typ, "ts": intents.FormatTime(at), "position": position, "seq": seq,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := docs.Create(t.Context(), tenant, storage.IndexEvents, storage.Document{ID: id, Body: body}); err != nil {
		t.Fatal(err)
	}
}

func as(user string, roles ...string) intents.Principal {
	return intents.Principal{UserID: user, Tenant: "acme", Roles: roles}
}

func get(who intents.Principal, plan string, trace bool) executortest.Intent {
	in := executortest.Intent{Type: "plan.get", NoScope: true, Args: catalog.PlanGet{PlanID: plan, Trace: trace}}
	in.Ticket.Actor = who
	return in
}

func TestGet(t *testing.T) {
	docs, e := open(t)
	want := view("ana", 1, catalog.PlanExecuting)
	put(t, docs, want)
	var got catalog.PlanGetResult
	e.Must(t, get(as("ana"), want.PlanID, false), &got)
	if diff := cmp.Diff(want, got.Plan); diff != "" || got.Events != nil {
		t.Error(diff)
	}
}

// TestPlanReadRights: users their own, overseers the tenant's whatever their roles are
// called, nobody
// another tenant's; what is not seen does not exist.
func TestPlanReadRights(t *testing.T) {
	docs, e := open(t)
	v := view("ana", 1, catalog.PlanComplete)
	put(t, docs, v)
	for _, tt := range []struct {
		principal intents.Principal
		oversees  bool
		want      intents.Code
	}{
		{as("ana"), false, intents.OK},
		{as("bob", "user", "approver"), false, intents.NotFound},
		{as("bob", "auditor", "admin"), false, intents.NotFound},
		{as("bob", "user"), true, intents.OK},
		{intents.Principal{UserID: "ana", Tenant: "evil"}, true, intents.NotFound},
	} {
		one := get(tt.principal, v.PlanID, true)
		one.Ticket.Oversees = tt.oversees
		if r := e.Do(t, one); r.Code != tt.want {
			t.Errorf("%+v: %+v", tt.principal, r)
		}
		in := executortest.Intent{Type: "plan.list", NoScope: true, Args: catalog.PlanList{}}
		in.Ticket.Actor, in.Ticket.Oversees = tt.principal, tt.oversees
		var got catalog.PlanListResult
		e.Must(t, in, &got)
		if seen := len(got.Plans) == 1; seen != (tt.want == intents.OK) {
			t.Errorf("%+v lists %d", tt.principal, len(got.Plans))
		}
	}
}

// TestTrace: the plan's events, all pages, in order.
func TestTrace(t *testing.T) {
	docs, e := open(t)
	v := view("ana", 1, catalog.PlanComplete)
	put(t, docs, v)
	event(t, docs, "acme", v.PlanID, "third", start.Add(time.Second), 7, 0)
	event(t, docs, "acme", v.PlanID, "second", start, 5, 1)
	event(t, docs, "acme", v.PlanID, "first", start, 5, 0)
	event(t, docs, "acme", "plan_other", "other", start, 6, 0)
	event(t, docs, "evil", v.PlanID, "other", start, 6, 0)
	trace := func() string {
		var got catalog.PlanGetResult
		e.Must(t, get(as("ana"), v.PlanID, true), &got)
		var types []string
		for _, raw := range got.Events {
			var one struct {
				Type string `json:"event_type"`
			}
			if err := json.Unmarshal(raw, &one); err != nil {
				t.Fatal(err)
			}
			types = append(types, one.Type)
		}
		return strings.Join(types, " ")
	}
	if got := trace(); got != "first second third" {
		t.Error(got)
	}
	for _, e := range []struct{ id, user, session string }{{"a", "ana", v.SessionID}, {"b", "ana", v.SessionID}, {"c", "bob", v.SessionID}, {"d", "ana", "another"}} {
		body := fmt.Sprintf(`{"event_id":%q,"tenant_id":"acme","user_id":%q,"session_id":%q,"plan_id":"plan_%s","event_type":%q,"ts":%q}`, "s"+e.id, e.user, e.session, e.id, "of_"+e.id, intents.FormatTime(start))
		if _, err := docs.Create(t.Context(), "acme", storage.IndexEvents, storage.Document{ID: "s" + e.id, Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
	}
	session := get(as("ana"), v.PlanID, true)
	session.Args = catalog.PlanGet{PlanID: v.PlanID, Trace: true, Session: true}
	var all catalog.PlanGetResult
	e.Must(t, session, &all)
	if len(all.Events) != 2 || !strings.Contains(string(all.Events[0]), "of_a") || !strings.Contains(string(all.Events[1]), "of_b") {
		t.Errorf("of the session: %s", all.Events)
	}
	if got := trace(); got != "first second third" {
		t.Error(got)
	}
	var more []storage.Document
	for i := range 1200 {
		body := fmt.Sprintf(`{"event_id":"m%d","tenant_id":"acme","plan_id":%q,"event_type":"more","ts":%q}`, i, v.PlanID, intents.FormatTime(start.Add(time.Hour)))
		more = append(more, storage.Document{ID: fmt.Sprint("m", i), Body: json.RawMessage(body)})
	}
	if _, err := docs.Create(t.Context(), "acme", storage.IndexEvents, more...); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(trace()); len(got) != 1203 || got[2] != "third" {
		t.Errorf("%d events", len(got))
	}
}

func TestList(t *testing.T) {
	docs, e := open(t)
	for i := range 12 {
		status := catalog.PlanComplete
		if i%3 == 0 {
			status = catalog.PlanFailed
		}
		put(t, docs, view("ana", i, status))
	}
	put(t, docs, view("bob", 99, catalog.PlanComplete))
	list := func(args catalog.PlanList) (ids []string) {
		t.Helper()
		for pages := 0; pages == 0 || args.After != ""; pages++ {
			in := executortest.Intent{Type: "plan.list", NoScope: true, Args: args}
			in.Ticket.Actor = as("ana")
			var got catalog.PlanListResult
			e.Must(t, in, &got)
			for _, p := range got.Plans {
				if p.IntentHistory != nil {
					t.Error("a list holds intents of steps")
				}
				ids = append(ids, strings.TrimPrefix(p.PlanID, "plan_ana_"))
			}
			if args.Limit > 0 && len(got.Plans) > args.Limit || pages > 20 {
				t.Fatalf("page of %d, limit %d", len(got.Plans), args.Limit)
			}
			args.After = got.Cursor
		}
		return ids
	}
	if got := strings.Join(list(catalog.PlanList{Limit: 7}), " "); got != "11 10 9 8 7 6 5 4 3 2 1 0" {
		t.Error(got)
	}
	if got := strings.Join(list(catalog.PlanList{Status: "failed"}), " "); got != "9 6 3 0" {
		t.Error(got)
	}
}

// A list of large plans ends early, and goes on where it ended.
func TestListOfLargePlans(t *testing.T) {
	docs, e := open(t)
	for i := range 40 {
		v := view("ana", i, catalog.PlanComplete)
		v.Response = strings.Repeat("x", 60_000)
		put(t, docs, v)
	}
	in := executortest.Intent{Type: "plan.list", NoScope: true, Args: catalog.PlanList{Limit: 40}}
	var got catalog.PlanListResult
	r := e.Must(t, in, &got)
	if len(got.Plans) >= 40 || got.Cursor == "" || len(r.Result) > 2<<20 {
		t.Errorf("%d plans, %d bytes", len(got.Plans), len(r.Result))
	}
}
