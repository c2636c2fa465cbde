package audit_test

import (
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// TestRolesAreReplayed: roles are limited to those of API key and user row at the intent's own position: a
// replay applies the same limit, and finds decisions with other roles.
func TestRolesAreReplayed(t *testing.T) {
	w := newWorld(t)
	w.apiKeys("k1")
	find := routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}, Roles: []string{"user", "approver", "auditor"}}
	w.Want(w.Do(find), intents.OK)
	w.user("ana", "user")
	cut := *w.Want(w.Do(find), intents.OK).Position
	put := func(a catalog.AdminPut) {
		a.Tenant = "default"
		w.Want(w.Admin("admin.put", a), intents.OK)
	}
	task := w.Begun("p1", "feed").Started(1)
	put(catalog.AdminPut{User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}})
	w.Want(task.Write("late"), intents.KeyRevoked)
	w.Want(w.Do(find), intents.RBACForbidden)
	w.user("ana", "user")
	w.Want(w.Do(find), intents.OK)
	put(catalog.AdminPut{APIKey: &catalog.APIKey{ID: "k1", Hash: intents.Digest([]byte("k1")), UserID: "k1", MaxRoles: []string{"user"}, Revoked: true}})
	refused := *w.Want(w.Do(find), intents.RBACForbidden).Position

	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Fatalf("%+v %v", r, r.FirstBad)
	}
	replayed := audit.Options{Replay: true}
	w.badAt(w.part(cut, storage.PartInputs, func(m map[string]any) { m["roles"] = []string{"user", "approver"} }), cut, "other roles", replayed)
	w.badAt(w.part(cut, storage.PartInputs, func(m map[string]any) { m["roles"] = []string{} }), cut, "other roles", replayed)
	w.badAt(w.permits(refused), refused, "comes out deny (RBAC_FORBIDDEN)", replayed)
}
