package plans_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/plans"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// TestPlanReadRights: agents get their user's plans, whatever the user's roles are called; others do
// not exist.
func TestPlanReadRights(t *testing.T) {
	all := func(string, []byte, any) (string, string, bool) { return "", "", true }
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), all, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	e := executortest.New(t, plans.Name, nil, plans.Handlers(docs))
	v := catalog.PlanView{PlanID: "plan_1", TenantID: "acme", UserID: "ana", Status: catalog.PlanExecuting, Task: "count", MaxSteps: catalog.MaxSteps, Steps: []catalog.StepView{}, History: []catalog.Replan{}, CreatedAt: time.Unix(1_790_000_000, 0).UTC()}
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := docs.Put(t.Context(), "acme", storage.IndexPlans, storage.Document{ID: v.PlanID, Position: 1, Body: body}); err != nil {
		t.Fatal(err)
	}
	as := func(tenant, user string, roles ...string) intents.Principal {
		return intents.Principal{UserID: user, Tenant: tenant, Roles: roles}
	}
	for _, tt := range []struct {
		principal intents.Principal
		want      intents.Code
	}{
		{as("acme", "ana"), intents.OK},
		{as("acme", "bob", "user", "approver"), intents.NotFound},
		{as("acme", "bob", "auditor", "admin"), intents.NotFound},
		{as("evil", "ana"), intents.NotFound},
	} {
		in := executortest.Intent{Type: "plan.get", NoScope: true, Args: catalog.PlanGet{PlanID: v.PlanID}}
		in.Ticket.Actor = tt.principal
		r := e.Do(t, in)
		if r.Code != tt.want {
			t.Errorf("%+v: %+v", tt.principal, r)
		}
		var got catalog.PlanGetResult
		if r.Code == intents.OK && (json.Unmarshal(r.Result, &got) != nil || !cmp.Equal(v, got.Plan)) {
			t.Error(cmp.Diff(v, got.Plan))
		}
	}
}
