package audit_test

import (
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestReplayNewTenants: a replay holds what was held because of the tenant's initial data.
func TestReplayNewTenants(t *testing.T) {
	w := worldOf(routertest.New(t, routertest.Options{}))
	made := func(tenant string) *routertest.Task {
		w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: tenant}}), intents.OK)
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: tenant, User: &catalog.User{UserID: "zoe", Roles: []string{"approver"}}}), intents.OK)
		w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: tenant, Skill: "pay", Digest: intents.Digest(nil), Effect: catalog.Once}), intents.OK)
		p := w.NewPlan("p_" + tenant)
		p.Tenant = tenant
		w.Want(p.Open(), intents.OK)
		w.Want(p.Claim(), intents.OK)
		w.Want(p.Plan(routertest.Steps(1, "pay")), intents.OK)
		return p.Started(1)
	}
	w.Want(made("acme").Call("pay", `{"n":1}`), intents.ApprovalRequired)
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
}
