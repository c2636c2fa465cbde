package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
)

// TestEnginesOfTenants: a change in one tenant leaves the engine of another as it is, with all that it
// remembers. A tenant's own change makes another engine, and a decision on earlier data does not
// bring the earlier one back.
func TestEnginesOfTenants(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	put := func(a catalog.AdminPut) { w.Want(w.Admin("admin.put", a), intents.OK) }
	put(catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}})
	engine := func(tenant string) *policies.Engine {
		t.Helper()
		e, err := w.Router.EngineOn(t.Context(), w.Dir.View(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	before := w.Dir.View()
	ours, theirs := engine("acme"), engine("default")
	for name, change := range map[string]func(){
		"data":     func() { w.Data("python", "false") },
		"approver": func() { w.Approval(`{"once":true}`, "ben") },
		"skill":    func() { w.Pin("feed", catalog.Once) },
		"role": func() {
			put(catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "guest", Capabilities: []string{}}})
		},
	} {
		change()
		if engine("acme") != ours {
			t.Errorf("%s of another tenant: what acme's policy remembers is dropped", name)
		}
		if is := engine("default"); is == theirs {
			t.Errorf("%s: the policy answers for earlier data", name)
		} else {
			theirs = is
		}
	}
	earlier, err := w.Router.EngineOn(t.Context(), before, "default")
	if err != nil || earlier == theirs {
		t.Errorf("a decision on earlier data has the engine of later data: %v", err)
	}
	if engine("default") != theirs {
		t.Error("a decision on earlier data brings the earlier engine back")
	}
}

// TestConvertingDelaysNoOtherTenant: while the data of one tenant is converted, the policy decides for
// others.
func TestConvertingDelaysNoOtherTenant(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	converts, converted := make(chan struct{}), make(chan struct{})
	w.Router.ConvertBy("acme", w.Dir.View(), func() (*policies.Engine, error) {
		close(converts)
		<-converted
		return w.Policy.Engine(), nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := w.Router.EngineOn(t.Context(), w.Dir.View(), "acme")
		done <- err
	}()
	<-converts
	w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}})
	w.Data("python", "false")
	w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "r"}})
	close(converted)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
