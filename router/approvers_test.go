package router_test

import (
	"slices"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestApproversByCapability: capabilities, not names of roles, determine whom policies call
// approvers.
func TestApproversByCapability(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	role := func(name string, capabilities ...string) {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: name, Capabilities: capabilities}}), intents.OK)
	}
	approval := func(rule string) catalog.AdminPut {
		return catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: []byte(rule)}}
	}
	role("seniors", "runs:*")
	role("approver", "plans:read") // the name alone gives nothing
	user(w, "zoe", "seniors")
	user(w, "yan", "approver")
	w.Want(w.Admin("admin.put", approval(`{"once":true,"count":2}`)), intents.MalformedArgs)
	w.Want(w.Admin("admin.put", approval(`{"once":true}`)), intents.OK)
	a := w.Want(started(w, catalog.Once).Call("feed", `{}`), intents.ApprovalRequired)
	if !slices.Equal(a.Decision.Approvers, []string{"zoe"}) {
		t.Errorf("%+v", a.Decision)
	}
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "zoe", Roles: []string{"seniors"}, Disabled: true}}), intents.OK)
	p := w.NewPlan("p2")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Plan(routertest.Steps(1, "feed")), intents.OK)
	if a := w.Want(p.Started(1).Call("feed", `{}`), intents.PolicyDenied); a.Decision.PolicyIDs[0] != "writ.approval.nobody" {
		t.Errorf("%+v", a.Decision)
	}
}
