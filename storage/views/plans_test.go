package views_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/storage/views"
)

var start = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func open(t *testing.T) *sqlite.Documents {
	t.Helper()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), check, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	return docs
}

func check(index string, _ []byte, value any) (pointer, reason string, ok bool) {
	schema, err := schemas.Storage(index)
	if err != nil {
		return "", err.Error(), false
	}
	if v := schema.Validate(value); len(v) > 0 {
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

func TestPlan(t *testing.T) {
	docs := open(t)
	want := view("ana", 1, catalog.PlanExecuting)
	put(t, docs, want)
	got, err := views.Plan(t.Context(), docs, "acme", want.PlanID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := views.Plan(t.Context(), docs, "evil", want.PlanID); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
}

// TestTrace: the plan's events, all pages, in order.
func TestTrace(t *testing.T) {
	docs := open(t)
	v := view("ana", 1, catalog.PlanComplete)
	put(t, docs, v)
	event(t, docs, "acme", v.PlanID, "third", start.Add(time.Second), 7, 0)
	event(t, docs, "acme", v.PlanID, "second", start, 5, 1)
	event(t, docs, "acme", v.PlanID, "first", start, 5, 0)
	event(t, docs, "acme", "plan_other", "other", start, 6, 0)
	event(t, docs, "evil", v.PlanID, "other", start, 6, 0)
	trace := func() string {
		events, err := views.Events(t.Context(), docs, v, nil)
		if err != nil {
			t.Fatal(err)
		}
		var types []string
		for _, raw := range events {
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
	some, err := views.Events(t.Context(), docs, v, func(plan string) (bool, error) { return plan == "plan_b", nil })
	if err != nil || len(some) != 1 || !strings.Contains(string(some[0]), "of_b") {
		t.Errorf("of a shown plan: %s, %v", some, err)
	}
	all, err := views.Events(t.Context(), docs, v, func(string) (bool, error) { return true, nil })
	if err != nil || len(all) != 2 || !strings.Contains(string(all[0]), "of_a") || !strings.Contains(string(all[1]), "of_b") {
		t.Errorf("of the session: %s, %v", all, err)
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
	docs := open(t)
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
			got, err := views.Plans(t.Context(), docs, "acme", "ana", args)
			if err != nil {
				t.Fatal(err)
			}
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
	if all, err := views.Plans(t.Context(), docs, "acme", "", catalog.PlanList{Limit: 1}); err != nil || len(all.Plans) != 1 || all.Plans[0].UserID != "bob" {
		t.Errorf("of all users: %+v, %v", all, err)
	}
}

// A list of large plans ends early, and goes on where it ended.
func TestListOfLargePlans(t *testing.T) {
	docs := open(t)
	for i := range 40 {
		v := view("ana", i, catalog.PlanComplete)
		v.Response = strings.Repeat("x", 60_000)
		put(t, docs, v)
	}
	got, err := views.Plans(t.Context(), docs, "acme", "ana", catalog.PlanList{Limit: 40})
	raw, _ := json.Marshal(got)
	if err != nil || len(got.Plans) >= 40 || got.Cursor == "" || len(raw) > 2<<20 {
		t.Errorf("%d plans, %d bytes, %v", len(got.Plans), len(raw), err)
	}
}
