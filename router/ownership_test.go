package router_test

import (
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// A time that the schema accepts and the state cannot read must be refused: a record that cannot be
// applied ends the log for everybody.
func TestRevokeWithATimeThatTheStateCannotRead(t *testing.T) {
	for _, before := range []string{"2026-11-20t10:00:00z", "2016-12-31T23:59:60Z"} {
		w := routertest.New(t, routertest.Options{})
		w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: before}), intents.MalformedArgs)
		if err := w.Dir.Err(); err != nil || !w.Router.Ready() {
			t.Errorf("%s: fold: %v, ready %v", before, err, w.Router.Ready())
		}
	}
}

// A revocation is never undone by one of an earlier time.
func TestRevocationIsMonotonic(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	raw := w.Sign(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}})
	for _, d := range []time.Duration{time.Second, -time.Hour} {
		w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: intents.FormatTime(w.Clock.Now().Add(d))}), intents.OK)
	}
	w.Want(w.Send(raw), intents.GrantInvalid)
}

// A revocation ends the existing grants. One of the future would lock the user out until then,
// irrevocably; clocks may differ by the leeway.
func TestRevocationOfTheFuture(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	revoke := func(ahead time.Duration) *intents.Answer {
		return w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: intents.FormatTime(w.Clock.Now().Add(ahead))})
	}
	for _, ahead := range []time.Duration{intents.Leeway + time.Millisecond, 100 * 365 * 24 * time.Hour} {
		if a := w.Want(revoke(ahead), intents.MalformedArgs); a.Pointer != "/intent/args/before" {
			t.Errorf("%s: at %q", ahead, a.Pointer)
		}
	}
	soul := routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}}
	w.OK(soul)
	w.Want(revoke(intents.Leeway), intents.OK)
	w.Want(w.Do(soul), intents.GrantInvalid)
	w.Clock.Move(2*intents.Leeway + time.Second) // a clock may be ahead once more
	w.OK(soul)
}

// An executor's number that the schema accepts as an integer and Go does not must not end the log.
func TestMemoryResultThatTheStateCannotRead(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w.Bus.On("write_memory", routertest.Always(intents.Report{
		Status: intents.Done, Code: intents.OK,
		Result: json.RawMessage(`{"key":"` + task.MemoryKey("result") + `","size_bytes":1.0,"validated":true}`),
	}))
	task.Write("result")
	if err := w.Dir.Err(); err != nil || !w.Router.Ready() {
		t.Errorf("fold: %v, ready %v", err, w.Router.Ready())
	}
}

// A tenant is made once: making it again would lose its people, roles and pins.
func TestTenantIsMadeOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "eve", Roles: []string{"user"}, Disabled: true}}), intents.OK)
	for _, id := range []string{"default", "system"} {
		w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: id}}), intents.MalformedArgs)
	}
	if _, found, disabled := w.Dir.View().UserRoles("default", "eve"); !found || !disabled {
		t.Errorf("eve: found %v, disabled %v", found, disabled)
	}
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
}

// An API key belongs to the tenant that put it, and its id names one key.
func TestAPIKeyBelongsToItsTenant(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	key := func(id, text string) catalog.AdminPut {
		return catalog.AdminPut{APIKey: &catalog.APIKey{ID: id, Hash: intents.Digest([]byte(text)), UserID: "ana", MaxRoles: []string{"user"}}}
	}
	own := key("k1", "secret")
	own.Tenant = "default"
	w.Want(w.Admin("admin.put", own), intents.OK)
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	bob := w.AddOperator("acme", "bob", "admin")
	put := func(a catalog.AdminPut) *intents.Answer {
		return w.Do(routertest.Intent{By: bob, User: "bob", Tenant: "acme", Type: "admin.put", Args: a})
	}
	w.Want(put(key("mine", "secret")), intents.MalformedArgs)
	if _, tenant, ok := w.Dir.APIKey(intents.Digest([]byte("secret"))); !ok || tenant != "default" {
		t.Errorf("the key is of %q, %v", tenant, ok)
	}
	w.Want(put(key("k1", "other")), intents.OK)
	w.Want(put(key("k1", "third")), intents.MalformedArgs) // which of the two would k1 be?
	gone := key("k1", "other")
	gone.APIKey.Revoked = true
	w.Want(put(gone), intents.OK)
	w.Want(put(key("k1", "third")), intents.OK)
}

// A held intent ends the task that signed it, and no task that its context names.
func TestHoldEndsItsOwnTaskOnly(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("held", catalog.Pure)
	w.Approval(`{"skills":["held"]}`, "zoe")
	ana := started(w, catalog.Pure)
	bob := w.NewPlan("p2")
	bob.User = "bob"
	w.Want(bob.Open(), intents.OK)
	w.Want(w.Do(routertest.Intent{
		By: w.Workflow, User: "bob", Type: "skill.call", Args: catalog.SkillCall{Skill: "held"},
		Ctx: intents.Context{PlanID: routertest.PlanID("p2"), TaskID: ana.TaskID},
	}), intents.ApprovalRequired)
	w.Want(ana.Write("result"), intents.OK)
	w.Want(w.Do(routertest.Intent{
		By: w.Workflow, Type: "skill.call", Args: catalog.SkillCall{Skill: "held"},
		Ctx: intents.Context{PlanID: routertest.PlanID("p1"), TaskID: ana.TaskID, Revision: 1, Step: 1},
	}), intents.ApprovalRequired)
	w.Want(ana.Finish("done", ana.MemoryKey("result"), ""), intents.OK)
}

// The manager reads the results of its plan, and no other memory of the user.
func TestManagerReadsItsPlansMemoriesOnly(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	key := task.Done()
	w.Want(task.Read(key), intents.OK)
	w.Want(task.Read(routertest.MemoryKey("default", routertest.Session, "task_other", "secret")), intents.TaskScope)
	other := w.Begun("p2", "feed")
	w.Want(other.Read(key), intents.TaskScope)
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "read_memory", Args: catalog.ReadMemory{Key: key}}), intents.TaskScope)
}

// The gateway reads for people. The executor decides what they may see: it knows whose a memory is,
// of whatever plan.
func TestGatewayReadsMemoriesOfAnyPlan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	key := started(w, catalog.Pure).Done()
	w.Want(w.Do(routertest.Intent{By: w.Gateway, Type: "read_memory", Args: catalog.ReadMemory{Key: key}}), intents.OK)
}
