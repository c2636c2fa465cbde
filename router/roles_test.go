package router_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// put changes a row of tenant default.
func put(w *routertest.World, a catalog.AdminPut) {
	w.Helper()
	if a.Tenant == "" {
		a.Tenant = "default"
	}
	w.Want(w.Admin("admin.put", a), intents.OK)
}

// putKey puts an API key of user ana.
func putKey(w *routertest.World, tenant, id string, revoked bool, roles ...string) {
	w.Helper()
	put(w, catalog.AdminPut{Tenant: tenant, APIKey: &catalog.APIKey{
		ID: id, Hash: intents.Digest([]byte(tenant + id)), UserID: "ana", MaxRoles: append([]string{}, roles...), MayAssertUser: true, Revoked: revoked,
	}})
}

// through is skill.find under a grant of all roles that came through a client.
func through(w *routertest.World, client string) routertest.Intent {
	o := find(w)
	o.Roles = []string{"user", "auditor", "admin"}
	o.Grant = func(g *intents.Grant) { g.Act.Client = client }
	return o
}

// inputsOf an intent's record.
func inputsOf(w *routertest.World, a *intents.Answer) (f intents.DecisionInputs) {
	w.Helper()
	rec, err := w.Journal.Get(w.Context(), *a.Position)
	w.Must(err)
	w.Must(json.Unmarshal(rec.Parts[storage.PartInputs], &f))
	return f
}

// Each intent is judged with the roles that API key and user row give now, however long its grant
// still lives: the record names them, and the executor gets them.
func TestRolesOfToday(t *testing.T) {
	const key = "apikey:k1"
	for name, c := range map[string]struct {
		client string
		change func(w *routertest.World)
		want   []string // roles; nil: refused
	}{
		"as granted":              {key, func(*routertest.World) {}, []string{"user", "auditor"}},
		"the key gives less":      {key, func(w *routertest.World) { putKey(w, "default", "k1", false, "user") }, []string{"user"}},
		"the key gives nothing":   {key, func(w *routertest.World) { putKey(w, "default", "k1", false) }, nil},
		"the key is revoked":      {key, func(w *routertest.World) { putKey(w, "default", "k1", true, "user") }, nil},
		"no such key":             {"apikey:k2", func(*routertest.World) {}, nil},
		"another tenant's key":    {"apikey:k2", func(w *routertest.World) { putKey(w, "system", "k2", false, "user") }, nil},
		"its namesake is revoked": {key, func(w *routertest.World) { putKey(w, "system", "k1", true, "user") }, []string{"user", "auditor"}},
		"the key has another id": {"apikey:k9", func(w *routertest.World) {
			put(w, catalog.AdminPut{APIKey: &catalog.APIKey{ID: "k9", Hash: intents.Digest([]byte("defaultk1")), UserID: "ana", MaxRoles: []string{"user"}}})
		}, []string{"user"}},
		"the old id of the key": {key, func(w *routertest.World) {
			put(w, catalog.AdminPut{APIKey: &catalog.APIKey{ID: "k9", Hash: intents.Digest([]byte("defaultk1")), UserID: "ana", MaxRoles: []string{"user"}}})
		}, nil},
		"the key is somebody else's": {key, func(w *routertest.World) {
			put(w, catalog.AdminPut{APIKey: &catalog.APIKey{ID: "k1", Hash: intents.Digest([]byte("defaultk1")), UserID: "bob", MaxRoles: []string{"user"}}})
		}, nil},
		"the user has less":         {key, func(w *routertest.World) { user(w, "ana", "user", "admin") }, []string{"user"}},
		"the user is disabled":      {key, disable, nil},
		"no key":                    {"token", func(*routertest.World) {}, []string{"user", "auditor", "admin"}},
		"no key, the user has less": {"token", func(w *routertest.World) { user(w, "ana", "user") }, []string{"user"}},
		"no key, disabled":          {"token", disable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			putKey(w, "default", "k1", false, "user", "auditor")
			raw := w.Sign(through(w, c.client)) // before the change, as grants are
			c.change(w)
			a := w.Send(raw)
			if c.want == nil {
				w.Want(a, intents.RBACForbidden)
				return
			}
			w.Want(a, intents.OK)
			if got := inputsOf(w, a).Roles; !cmp.Equal(got, c.want) {
				t.Errorf("the record says %v", got)
			}
			if got := w.Bus.Calls("skill.find")[0].Ticket.Actor.Roles; !cmp.Equal(got, c.want) {
				t.Errorf("the executor is told %v", got)
			}
		})
	}
}

func disable(w *routertest.World) {
	w.Helper()
	put(w, catalog.AdminPut{User: &catalog.User{UserID: "ana", Roles: []string{"user", "auditor"}, Disabled: true}})
}

// A decision depends on the rows that it read: a revocation before its commit makes it another
// decision.
func TestRolesAreAsserted(t *testing.T) {
	for name, change := range map[string]func(w *routertest.World){
		"key": func(w *routertest.World) { putKey(w, "default", "k1", true, "user") }, "user": disable,
	} {
		w, j := withHooks(t)
		putKey(w, "default", "k1", false, "user")
		raw := w.Sign(through(w, "apikey:k1"))
		j.beforeCommit = func() { change(w) }
		if a := w.Send(raw); a.Code != intents.RBACForbidden || len(w.Bus.Calls("skill.find")) != 0 {
			t.Errorf("%s: %s", name, a.Code)
		}
	}
}

// A dry run also uses today's roles.
func TestDryRunRolesOfToday(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	putKey(w, "default", "k1", false, "user", "auditor")
	raw := w.Sign(through(w, "apikey:k1"))
	if _, err := w.Router.DryRun(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	putKey(w, "default", "k1", false, "user")
	if _, err := w.Router.DryRun(t.Context(), raw); intents.CodeOf(err) != intents.RBACForbidden {
		t.Errorf("explained to who may not see decisions: %v", err)
	}
}

// Disabling a user ends the user's open plans, as revoking the grants does: tasks are dead, held
// intents end, and others continue.
func TestDisabledUserEndsPlans(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	task := x.task
	other := w.NewPlan("p_bob")
	other.User = "bob"
	w.Want(other.Open(), intents.OK)
	disable(w)
	if v := task.View(); v.Status != catalog.PlanFailed || v.Failure == nil || v.Failure.Reason != "the user was disabled" {
		t.Errorf("%+v", v)
	}
	w.Want(x.outcome(), intents.Cancelled)
	w.Want(task.Write("late"), intents.KeyRevoked)
	if v := other.View(); v.Status != catalog.PlanPending {
		t.Errorf("another user's plan is %s", v.Status)
	}
	w.Want(w.NewPlan("p_new").Open(), intents.RBACForbidden)
	next := w.Restart()
	if v := task.On(next).View(); v.Status != catalog.PlanFailed {
		t.Errorf("after a restart the plan is %s", v.Status)
	}
	put(next, catalog.AdminPut{User: &catalog.User{UserID: "ana", Roles: []string{"user"}}})
	next.Want(next.NewPlan("p_new").Open(), intents.OK)
}
