package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// TestNewTenantsHoldWhatActsOnce: a tenant made later begins as the default one of a
// new log does, until its data says otherwise. One of the rules of before stays free.
func TestNewTenantsHoldWhatActsOnce(t *testing.T) {
	w := routertest.NewOld(t, routertest.Options{})
	put := func(a catalog.AdminPut) { w.Want(w.Admin("admin.put", a), intents.OK) }
	put(catalog.AdminPut{New: &catalog.Tenant{ID: "early"}})
	w.Must(w.Router.Start(t.Context()))
	put(catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}})
	for _, m := range w.Dir.Misput(nil) {
		if !m.Denies || m.Tenant != "acme" {
			t.Errorf("told as a mistake: %+v", m)
		}
	}
	call := func(tenant, id string) *intents.Answer {
		p := w.NewPlan(id)
		p.Tenant = tenant
		w.Want(p.Open(), intents.OK)
		w.Want(p.Claim(), intents.OK)
		w.Want(p.Plan(routertest.Steps(1, "pay")), intents.OK)
		return p.Started(1).Call("pay", `{}`)
	}
	for _, tenant := range []string{"early", "acme"} {
		w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: tenant, Skill: "pay", Digest: intents.Digest(nil), Effect: catalog.Once}), intents.OK)
	}
	w.Want(call("early", "p1"), intents.OK)
	if a := w.Want(call("acme", "p2"), intents.PolicyDenied); a.Decision.PolicyIDs[0] != "writ.approval.nobody" {
		t.Errorf("%+v", a.Decision)
	}
	put(catalog.AdminPut{Tenant: "acme", User: &catalog.User{UserID: "zoe", Roles: []string{"approver"}}})
	w.Want(call("acme", "p3"), intents.ApprovalRequired)
	w = w.Restart()
	w.Want(call("acme", "p4"), intents.ApprovalRequired)
	put(catalog.AdminPut{Tenant: "acme", Data: &catalog.Data{Key: "approval", Value: []byte(`null`)}})
	w.Want(call("acme", "p5"), intents.OK)
}
