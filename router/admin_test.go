package router_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
)

// A key set must be the root-signed successor of the one in force.
func TestKeyPut(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for name, change := range map[string]func(*intents.KeySet){
		"skips a version": func(s *intents.KeySet) { s.Version++ },
		"same version":    func(s *intents.KeySet) { s.Version-- },
		"other prev":      func(s *intents.KeySet) { s.Prev = intents.Digest(nil) },
	} {
		if a := w.Keys(change); a.Code != intents.MalformedArgs || a.Pointer != "/intent/args/key_set" {
			t.Errorf("%s: %s at %s", name, a.Code, a.Pointer)
		}
	}
	root := w.Root
	w.Root = w.NewKey(intents.RoleRoot)
	w.Want(w.Keys(func(*intents.KeySet) {}), intents.MalformedArgs)
	w.Root = root
	w.Want(w.Keys(func(*intents.KeySet) {}), intents.OK)
	if v := w.Dir.JWKS(); v.Version != 2 || v.Origin != w.Origin || len(v.Keys) != 6 {
		t.Errorf("%+v", v)
	}
}

// Rotation: from its position on the new key signs and the old one no longer does. What the old key
// signed stays, also in a rebuilt state, and GET still answers it.
func TestKeyRotation(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("p1", "a")
	old, fresh := w.Manager, w.NewKey(intents.RoleManager)
	soul := routertest.Intent{By: old, Type: "soul.get", Args: catalog.SoulGet{}}
	before := w.OK(soul)
	w.Want(w.Keys(func(s *intents.KeySet) {
		for i := range s.Keys {
			s.Keys[i].Revoked = s.Keys[i].KID == old.KID
		}
		s.Keys = append(s.Keys, fresh.VerificationKey().ToJWK())
	}), intents.OK)
	w.Want(w.Do(soul), intents.KeyRevoked)
	w.Manager = fresh
	w.Want(p.Claim(), intents.OK)
	next := w.Restart()
	if got := p.On(next).View(); got.Epoch != 2 {
		t.Errorf("%+v", got)
	}
	a, err := next.Router.Intent(t.Context(), *before.Position)
	w.Must(err)
	if a.Code != intents.OK || a.IntentID != before.IntentID || a.Receipt != before.Receipt {
		t.Errorf("%+v", a)
	}
	// A key that left the set is unknown.
	w = next
	w.Want(w.Keys(func(s *intents.KeySet) { s.Keys = s.Keys[:len(s.Keys)-1] }), intents.OK)
	soul.By = fresh
	w.Want(w.Do(soul), intents.KeyUnknown)
}

// admin.put, one row of each kind, and its effect on permissions.
func TestAdminPut(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	put := func(a catalog.AdminPut) *intents.Answer { return w.Admin("admin.put", a) }
	hash := intents.Digest([]byte("secret"))
	key := catalog.APIKey{ID: "k7", Hash: hash, UserID: "ana", MaxRoles: []string{"user"}}
	w.Want(put(catalog.AdminPut{Tenant: "default", APIKey: &key}), intents.OK)
	if got, tenant, ok := w.Dir.APIKey(hash); !ok || tenant != "default" || !cmp.Equal(got, key) {
		t.Errorf("%+v %s %v", got, tenant, ok)
	}
	key.Revoked = true
	w.Want(put(catalog.AdminPut{Tenant: "default", APIKey: &key}), intents.OK)
	if _, _, ok := w.Dir.APIKey(hash); ok || !w.Dir.HasAPIKeys() {
		t.Error("a revoked key is found")
	}
	w.Want(put(catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "finder", Capabilities: []string{"skills:read"}}}), intents.OK)
	o := find(w)
	o.Roles = []string{"finder"}
	w.OK(o)
	w.Want(put(catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	o.Tenant, o.Roles = "acme", []string{"user"}
	w.OK(o)
	o.Roles = []string{"finder"} // a role of default
	w.Want(w.Do(o), intents.RBACForbidden)
	w.Data("python", "false")
	w.Pin("feed", catalog.Pure)
	task := w.Begun("p1", "feed").Started(1)
	if a := w.Want(w.Do(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"})), intents.PolicyDenied); a.Decision.PolicyIDs[0] != "writ.python.off" {
		t.Errorf("%v", a.Decision.PolicyIDs)
	}
	if got := w.Dir.Tenants(); !cmp.Equal(got, []string{"acme", "default", "system"}) {
		t.Errorf("tenants %v", got)
	}
	for name, a := range map[string]catalog.AdminPut{
		"no such tenant": {Tenant: "nowhere", User: &catalog.User{UserID: "x", Roles: []string{}}},
		"a tenant twice": {New: &catalog.Tenant{ID: "default"}},
	} {
		if got := put(a); got.Code != intents.MalformedArgs {
			t.Errorf("%s: %s", name, got.Code)
		}
	}
	w.Want(put(catalog.AdminPut{User: &catalog.User{UserID: "x", Roles: []string{}}, New: &catalog.Tenant{ID: "two"}}), intents.SchemaInvalid)
	w.Want(put(catalog.AdminPut{}), intents.SchemaInvalid)
}

// A tenant's operator administers that tenant; only system's operators name another.
func TestForeignTenant(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	bob := w.AddOperator("default", "bob", "admin")
	as := func(typ string, args any) *intents.Answer {
		return w.Do(routertest.Intent{By: bob, User: "bob", Tenant: "default", Type: typ, Args: args})
	}
	digest := intents.Digest(nil)
	user := &catalog.User{UserID: "carl", Roles: []string{"user"}}
	w.Want(as("admin.put", catalog.AdminPut{User: user}), intents.OK)
	w.Want(as("admin.put", catalog.AdminPut{Tenant: "default", User: user}), intents.OK)
	w.Want(as("skill.approve", catalog.SkillApprove{Skill: "feed", Digest: digest, Effect: catalog.Pure}), intents.OK)
	w.Want(as("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "carl", Before: "2026-11-20T10:00:00Z"}), intents.OK)
	before := w.Dir.View().Pins("system")
	for typ, args := range map[string]any{
		"admin.put":     catalog.AdminPut{Tenant: "system", User: user},
		"skill.approve": catalog.SkillApprove{Tenant: "system", Skill: "feed", Digest: digest, Effect: catalog.Pure},
		"grant.revoke":  catalog.GrantRevoke{Tenant: "system", Sub: "local", Before: "2026-11-20T10:00:00Z"},
	} {
		if a := as(typ, args); a.Code != intents.RBACForbidden || a.Pointer != "/intent/args/tenant" {
			t.Errorf("%s: %s at %s", typ, a.Code, a.Pointer)
		}
	}
	w.Want(as("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "mine"}}), intents.RBACForbidden)
	if _, found, _ := w.Dir.View().UserRoles("system", "carl"); found || len(before) != 0 || len(w.Dir.View().Pins("system")) != 0 {
		t.Error("system was changed")
	}
}

// An operator's roles are the directory's current ones: if they are gone, disabled or cut, the key
// permits nothing.
func TestOperatorRoles(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	bob := w.AddOperator("default", "bob", "admin")
	intent := routertest.Intent{
		By: bob, User: "bob", Tenant: "default", Type: "skill.approve",
		Args: catalog.SkillApprove{Skill: "feed", Digest: intents.Digest(nil), Effect: catalog.Pure},
	}
	w.OK(intent)
	for _, u := range []catalog.User{{UserID: "bob", Roles: []string{"approver"}}, {UserID: "bob", Roles: []string{"admin"}, Disabled: true}} {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &u}), intents.OK)
		w.Want(w.Do(intent), intents.RBACForbidden)
	}
	w.OK(routertest.Intent{By: w.Operator, Type: "skill.approve", Args: intent.Args})
}

// An operator's intent names no plan that is not its own: while held it would block that plan. An
// operator may cancel any plan of the tenant, including the one that the intent names.
func TestOperatorNamesNoPlan(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "skill.approve"`)
	bob := w.AddOperator("default", "bob", "admin")
	p := w.NewPlan("p1")
	p.Want(p.Open(), intents.OK)
	p.Want(p.NewPlan("p2").Open(), intents.OK)
	intent := routertest.Intent{
		By: bob, User: "bob", Tenant: "default", Type: "skill.approve",
		Args: catalog.SkillApprove{Skill: "feed", Digest: intents.Digest(nil), Effect: catalog.Pure},
	}
	for _, plan := range []string{p.ID, "nowhere"} {
		intent.Ctx.PlanID = plan
		if a := w.Want(w.Do(intent), intents.TaskScope); a.Pointer != "/context/plan_id" {
			t.Errorf("%s: at %s", plan, a.Pointer)
		}
	}
	if n := len(w.Dir.Silent(w.Journal.Next())); n != 2 {
		t.Errorf("%d plans wait for a driver, want 2", n)
	}
	intent.Ctx.PlanID = ""
	w.Want(w.Do(intent), intents.ApprovalRequired)
	cancel := routertest.Intent{By: bob, User: "bob", Tenant: "default", Type: "cancel", Args: catalog.Cancel{PlanID: routertest.PlanID("p1")}, Ctx: intents.Context{PlanID: routertest.PlanID("p2")}}
	w.Want(w.Do(cancel), intents.TaskScope)
	cancel.Ctx.PlanID = routertest.PlanID("p1")
	w.OK(cancel)
}

// No other intent names a plan of another user either, held or not.
func TestIntentNamesItsUsersPlan(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "soul.get"`)
	w.Want(w.NewPlan("p1").Open(), intents.OK)
	for who, want := range map[string]intents.Code{"bob": intents.TaskScope, "ana": intents.ApprovalRequired} {
		a := w.Want(w.Do(routertest.Intent{By: w.Manager, User: who, Type: "soul.get", Args: catalog.SoulGet{}, Ctx: intents.Context{PlanID: routertest.PlanID("p1")}}), want)
		if want == intents.TaskScope && a.Pointer != "/context/plan_id" {
			t.Errorf("at %s", a.Pointer)
		}
		w.Want(w.Do(routertest.Intent{By: w.Planner, User: "bob", Type: "skill.find", Args: catalog.SkillFind{Query: "q"}, Ctx: intents.Context{PlanID: routertest.PlanID("p1")}}), intents.TaskScope)
	}
}

// grant.revoke ends the grants issued before, and the user's open plans with their tasks; other
// users' plans continue.
func TestGrantRevoke(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("a", catalog.Pure)
	mine := w.Begun("mine", "a")
	mine.Started(1)
	old := w.Sign(find(w))
	other := w.NewPlan("other")
	other.User = "bob"
	w.Want(other.Open(), intents.OK)
	w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"}), intents.OK)
	v := mine.View()
	if v.Status != catalog.PlanFailed || v.Failure.Reason == "" || v.Steps[0].Status != catalog.StepInterrupted || v.CompletedAt == nil {
		t.Errorf("%+v", v)
	}
	if s, _ := other.Status(); s != catalog.PlanPending {
		t.Errorf("bob's plan is %s", s)
	}
	w.Want(w.Send(old), intents.GrantInvalid)
	w.Clock.Move(6 * time.Second) // the gateway's clock may have been 5 s ahead when it issued it
	w.Want(w.Do(find(w)), intents.GrantInvalid)
	w.Clock.Move(time.Second)
	w.OK(find(w))
	w.Must(w.Router.Start(t.Context()))
}

// TestOverseersByCapability: capabilities, not names of roles, determine who sees the logs of
// all users of the tenant.
func TestOverseersByCapability(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for role, capabilities := range map[string][]string{
		"auditor": {"logs:read"}, "readers": {"logs:read", "audit:read"}, "keepers": {"logs:read", "admin:*"},
	} {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: role, Capabilities: capabilities}}), intents.OK)
	}
	w.Bus.On("logs.stream", routertest.Always(routertest.Done(catalog.LogsStreamResult{StreamURL: "ws://127.0.0.1/v1/logs/x", ExpiresSec: 90})))
	for i, c := range []struct {
		role string
		want bool
	}{{"user", false}, {"auditor", false}, {"readers", true}, {"keepers", true}} {
		w.OK(routertest.Intent{By: w.Gateway, Roles: []string{c.role}, Type: "logs.stream", Args: catalog.LogsStream{RunID: routertest.PlanID("p1")}})
		if got := w.Bus.Calls("logs.stream")[i].Ticket.Oversees; got != c.want {
			t.Errorf("%s oversees: %v", c.role, got)
		}
	}
}

// Policy judges by the pin in force, and executors get it.
func TestSkillApprove(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	if a := w.Want(task.Call("feed", `{"n":1}`), intents.OK); a.Decision.Effect != "pure" {
		t.Errorf("effect %s", a.Decision.Effect)
	}
	w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "feed", Digest: intents.Digest([]byte("v2")), Effect: catalog.Once}), intents.OK)
	if a := w.Want(task.Call("feed", `{"n":2}`), intents.OK); a.Decision.Effect != "once" {
		t.Errorf("effect %s", a.Decision.Effect)
	}
	if pin := w.Bus.Calls("skill.call")[1].Ticket.Pins[0]; pin.Digest != intents.Digest([]byte("v2")) {
		t.Errorf("%+v", pin)
	}
	w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "nowhere", Skill: "x", Digest: intents.Digest(nil), Effect: catalog.Pure}), intents.MalformedArgs)
}

// The genesis verifies only with the root that it names.
func TestGenesis(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	var c state.Control
	w.Must(json.Unmarshal(w.Records()[0].Parts["control"], &c))
	g, err := state.OpenGenesis(*c.Genesis)
	w.Must(err)
	if g.Origin != w.Origin || g.Policy != w.Policy.Engine().Digest() || g.Catalog != catalog.Builtin().Digest() || !cmp.Equal(g.Tenants, []string{"system", "default"}) {
		t.Errorf("%+v", g)
	}
	forged, err := intents.SignCompact(w.NewKey(intents.RoleRoot), intents.TypGenesis, g)
	w.Must(err)
	if _, err := state.OpenGenesis(forged); err == nil {
		t.Error("a genesis that another key signed opens")
	}
	g.Origin = "writ/other"
	forged, err = intents.SignCompact(w.Root, intents.TypGenesis, g)
	w.Must(err)
	if _, err := state.OpenGenesis(forged); err == nil {
		t.Error("a genesis with another origin opens")
	}
	if err := router.Begin(t.Context(), w.Journal, *c.Genesis, w.Clock.Now()); err == nil && w.Dir.Err() == nil {
		t.Error("a second genesis is taken")
	}
}

// A user's own soul needs less than the tenant's: the resource determines the capability.
func TestSoulCapability(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Bus.On("soul.put", routertest.Always(routertest.Done(catalog.Soul{})))
	for _, c := range []struct {
		user  string
		roles []string
		code  intents.Code
	}{
		{"ana", []string{"user"}, intents.OK},
		{"bob", []string{"user"}, intents.RBACForbidden},
		{"", []string{"user"}, intents.RBACForbidden},
		{"", []string{"admin"}, intents.OK},
	} {
		a := w.Do(routertest.Intent{By: w.Gateway, Type: "soul.put", Args: catalog.SoulPut{UserID: c.user, Persona: catalog.Persona{Name: "Ada"}}, Roles: c.roles})
		if a.Code != c.code {
			t.Errorf("soul of %q by %v: %s", c.user, c.roles, a.Code)
		}
	}
}
