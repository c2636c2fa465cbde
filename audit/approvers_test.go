package audit_test

import (
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestReplayApprovers: approvers are found by what their roles grant, whatever these are called. A replay finds the
// same people.
func TestReplayApprovers(t *testing.T) {
	w := worldOf(routertest.New(t, routertest.Options{}))
	put := func(a catalog.AdminPut) {
		t.Helper()
		a.Tenant = "default"
		w.Want(w.Admin("admin.put", a), intents.OK)
	}
	put(catalog.AdminPut{Role: &catalog.RoleData{Role: "seniors", Capabilities: []string{"runs:approve"}}})
	w.user("zoe", "seniors")
	put(catalog.AdminPut{Data: &catalog.Data{Key: "approval", Value: []byte(`{"once":true}`)}})
	w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "pay", Digest: intents.Digest(nil), Effect: catalog.Once}), intents.OK)
	task := w.Begun("p1", "pay").Started(1)
	w.Want(task.Call("pay", `{"n":2}`), intents.ApprovalRequired)
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
}
