package router_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// A memory for everybody of the tenant needs a capability of its own, which a wildcard over verbs
// does not give; one for the user or session does not.
func TestTenantMemoryCapability(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	write := func(scope string, declared ...string) intents.Code {
		o := task.Intent("write_memory", catalog.WriteMemory{Label: "x", Scope: scope, Data: json.RawMessage(`[1,2]`)})
		o.Capabilities = declared
		return w.Do(o).Code
	}
	give := func(capabilities ...string) {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: capabilities}}), intents.OK)
	}
	check := func(name, scope string, want intents.Code, declared ...string) {
		t.Helper()
		if got := write(scope, declared...); got != want {
			t.Errorf("%s, scope %q: %s, want %s", name, scope, got, want)
		}
	}
	check("as a new tenant has it", "tenant", intents.RBACForbidden)
	for _, scope := range []string{"", "session", "user"} {
		check("as a new tenant has it", scope, intents.OK)
	}
	check("declared beyond the role", "", intents.RBACForbidden, "memory:write", "memory:write:tenant")
	for _, c := range [][]string{{"memory:*"}, {"memory:write"}, {"*:*"}, {"memory:read:tenant", "memory:write"}, {"memory:write:own"}} {
		give(c...)
		check(c[0], "tenant", intents.RBACForbidden)
	}
	for _, c := range []string{"memory:write:tenant", "memory:write:*", "memory:*:tenant"} {
		give(c)
		check(c, "tenant", intents.OK)
		check(c, "tenant", intents.RBACForbidden, "memory:write")
		check(c, "tenant", intents.OK, "memory:write:tenant")
	}
}
