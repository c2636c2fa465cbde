package audit_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestReplayTenantMemory: a refused and an allowed memory for the tenant are decided the same again.
func TestReplayTenantMemory(t *testing.T) {
	w := newWorld(t)
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed")
	task := p.Started(1)
	o := task.Intent("write_memory", catalog.WriteMemory{Label: "x", Scope: "tenant", Data: json.RawMessage(`[1,2]`)})
	w.Want(w.Do(o), intents.RBACForbidden)
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*", "memory:*", "memory:write:tenant"}}}), intents.OK)
	again := task.Intent("write_memory", catalog.WriteMemory{Label: "y", Scope: "tenant", Data: json.RawMessage(`[1,2]`)})
	w.Want(w.Do(again), intents.OK)
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
}
