package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// A user of one tenant cannot find out which others exist: for an existing and a missing one the
// answers are the same, word for word.
func TestTenantsAreNotRevealed(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	eve := w.AddOperator("acme", "eve", "admin")
	for name, intent := range map[string]func(tenant string) routertest.Intent{
		"admin.put": func(tenant string) routertest.Intent {
			return routertest.Intent{Type: "admin.put", Args: catalog.AdminPut{Tenant: tenant, User: &catalog.User{UserID: "x", Roles: []string{"user"}}}}
		},
		"new tenant": func(tenant string) routertest.Intent {
			return routertest.Intent{Type: "admin.put", Args: catalog.AdminPut{New: &catalog.Tenant{ID: tenant}}}
		},
		"skill.approve": func(tenant string) routertest.Intent {
			return routertest.Intent{Type: "skill.approve", Args: catalog.SkillApprove{Tenant: tenant, Skill: "s", Digest: intents.Digest(nil), Effect: catalog.Pure}}
		},
		"grant.revoke": func(tenant string) routertest.Intent {
			return routertest.Intent{Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: tenant, Sub: "ana", Before: "2026-11-20T10:00:01Z"}}
		},
	} {
		var told []string
		for _, tenant := range []string{"default", "nowhere"} {
			o := intent(tenant)
			o.By, o.Tenant, o.User = eve, "acme", "eve"
			a := w.Want(w.Do(o), intents.RBACForbidden)
			raw, err := json.Marshal([]any{a.Code, a.Pointer, a.Reason, a.Hint, a.Decision.PolicyIDs, a.Violations})
			w.Must(err)
			told = append(told, string(raw))
		}
		if told[0] != told[1] || strings.Contains(told[0], "no such") {
			t.Errorf("%s: %s", name, told)
		}
	}
}
