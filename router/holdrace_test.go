package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// Changes between the decision of the last approval and its commit determine the release: it
// depends on nothing that is gone.
func TestReleaseMeets(t *testing.T) {
	for name, c := range map[string]struct {
		meets func(x releaseWorld, other intents.Signer)
		want  intents.Code // of the held intent; APPROVAL_REQUIRED: it is still held
	}{
		"a no":                        {func(x releaseWorld, _ intents.Signer) { x.Want(x.says("cleo", catalog.DecisionReject), intents.OK) }, intents.ApprovalRejected},
		"a cancel":                    {func(x releaseWorld, _ intents.Signer) { x.Want(x.task.Cancel(x.Gateway), intents.OK) }, intents.Cancelled},
		"the end of the plan":         {func(x releaseWorld, _ intents.Signer) { x.Want(x.task.Fail(), intents.OK) }, intents.Cancelled},
		"the approver's role":         {func(x releaseWorld, _ intents.Signer) { user(x.World, "dave", "user") }, intents.ApprovalRequired},
		"an earlier approver's role":  {func(x releaseWorld, _ intents.Signer) { user(x.World, "ben", "user") }, intents.ApprovalRequired},
		"the role's capabilities":     {func(x releaseWorld, _ intents.Signer) { role(x, "approver", "plans:read") }, intents.ApprovalRequired},
		"the asker's role":            {func(x releaseWorld, _ intents.Signer) { user(x.World, "ana", "auditor") }, intents.RBACForbidden},
		"the policy's data":           {func(x releaseWorld, _ intents.Signer) { x.Data("skills_allow", `["other"]`) }, intents.PolicyDenied},
		"more people":                 {func(x releaseWorld, _ intents.Signer) { x.Data("approval", `{"once":true,"count":3}`) }, intents.ApprovalRequired},
		"an earlier approver's grant": {func(x releaseWorld, _ intents.Signer) { ended(x, "ben") }, intents.ApprovalRequired},
		"the approver's grant":        {func(x releaseWorld, _ intents.Signer) { ended(x, "dave") }, intents.ApprovalRequired},
		"the asker's grant":           {func(x releaseWorld, _ intents.Signer) { ended(x, "ana") }, intents.Cancelled},
		"the key of a grant":          {func(x releaseWorld, other intents.Signer) { x.RevokeKey(other) }, intents.ApprovalRequired},
		"another pin": {func(x releaseWorld, _ intents.Signer) {
			x.Want(x.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "pay", Digest: intents.Digest([]byte("pay 2")), Effect: catalog.Once}), intents.OK)
		}, intents.PolicyDenied},
		"nothing of its own": {func(x releaseWorld, _ intents.Signer) {
			x.Want(x.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
		}, intents.OK},
	} {
		t.Run(name, func(t *testing.T) {
			w, b := interposed(t)
			user(w, "dave", "approver")
			x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
			other := w.NewKey(intents.RoleGateway)
			w.Want(w.Keys(func(set *intents.KeySet) { set.Keys = append(set.Keys, other.VerificationKey().ToJWK()) }), intents.OK)
			first := x.word("ben", catalog.DecisionApprove)
			first.IssuedBy = &other
			w.Want(w.Do(first), intents.OK)
			last := w.Sign(x.word("dave", catalog.DecisionApprove))
			b.commit = func() { c.meets(x, other) }
			w.Send(last)
			w.Want(x.outcome(), c.want)
			if n := len(w.Bus.Calls("skill.call")); (n == 1) != (c.want == intents.OK) {
				t.Errorf("%d effects", n)
			}
			w.Restart()
		})
	}
}

func role(x releaseWorld, name string, capabilities ...string) {
	x.Helper()
	x.Want(x.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: name, Capabilities: capabilities}}), intents.OK)
}

func ended(x releaseWorld, who string) {
	x.Helper()
	x.Want(x.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: who, Before: "2026-11-20T10:00:01Z"}), intents.OK)
}

// An intent that is refused for want of a slot is counted, like all that leave no record.
func TestOverloadedIsCounted(t *testing.T) {
	w := routertest.New(t, routertest.Options{UserHolds: 1})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	p := w.NewPlan("p2")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Plan(routertest.Steps(1, "pay")), intents.OK)
	before := w.Router.Counts().Refused[intents.Overloaded]
	w.Want(p.Started(1).Call("pay", `{"n":2}`), intents.Overloaded)
	if n := w.Router.Counts().Refused[intents.Overloaded] - before; n != 1 {
		t.Errorf("%d counted", n)
	}
	w.Want(x.says("ben", catalog.DecisionReject), intents.OK)
}
