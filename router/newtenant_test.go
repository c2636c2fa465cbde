package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestNewTenantsHoldWhatActsOnce: a tenant made later begins as the default one of a new log does,
// until its data says otherwise.
func TestNewTenantsHoldWhatActsOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	put := func(a catalog.AdminPut) { w.Want(w.Admin("admin.put", a), intents.OK) }
	put(catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}})
	for _, m := range w.Dir.Misput(nil) {
		if !m.Denies || m.Tenant != "acme" {
			t.Errorf("told as a mistake: %+v", m)
		}
	}
	call := func(id string) *intents.Answer {
		p := w.NewPlan(id)
		p.Tenant = "acme"
		w.Want(p.Open(), intents.OK)
		w.Want(p.Claim(), intents.OK)
		w.Want(p.Plan(routertest.Steps(1, "pay")), intents.OK)
		return p.Started(1).Call("pay", `{}`)
	}
	w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "acme", Skill: "pay", Digest: intents.Digest(nil), Effect: catalog.Once}), intents.OK)
	if a := w.Want(call("p2"), intents.PolicyDenied); a.Decision.PolicyIDs[0] != "writ.approval.nobody" {
		t.Errorf("%+v", a.Decision)
	}
	put(catalog.AdminPut{Tenant: "acme", User: &catalog.User{UserID: "zoe", Roles: []string{"approver"}}})
	w.Want(call("p3"), intents.ApprovalRequired)
	w = w.Restart()
	w.Want(call("p4"), intents.ApprovalRequired)
	put(catalog.AdminPut{Tenant: "acme", Data: &catalog.Data{Key: "approval", Value: []byte(`null`)}})
	w.Want(call("p5"), intents.OK)
}
