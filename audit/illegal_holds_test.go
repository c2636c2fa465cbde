package audit_test

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// holds appends an intent of the task as held.
func (d *dishonest) holds(terms intents.HoldTerms) int64 {
	d.Helper()
	return d.accepted(d.task.CallIntent("feed", `{}`), func(a *appended) {
		a.decision.Verdict, a.decision.Code, a.decision.Hold, a.outcome = intents.Hold, intents.ApprovalRequired, &terms, nil
	})
}

var holdMisdeeds = []misdeed{
	{"held-intent-done", "held", "outcome: a held intent is done only after its release", "without release", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Done, intents.OK)
	}},
	{"released-without-approval", "held", "release: the approvals satisfy every rule of the hold", "without the approvals", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval())
	}},
	{"released-by-one-of-two", "held", "release: the approvals satisfy every rule of the hold", "without the approvals", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben)
	}},
	{"released-by-one-twice", "held", "release: each person counts once", "without the approvals", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben, d.ben)
	}},
	{"released-by-nobody", "held", "release: every approval was given", "nobody gave", func(d *dishonest) int64 {
		cleo := intents.Approval{UserID: "cleo", At: d.ben.At, Roles: []string{"approver"}}
		return d.released(*d.held.Position, d.lastApproval(), d.ben, cleo)
	}},
	{"released-by-another-intent", "held", "release: by names the last approval", "last approval", func(d *dishonest) int64 {
		_, _, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		return d.released(*d.held.Position, d.lastApproval(), d.ben, cleo)
	}},
	{"released-late", "held", "release: before the deadline", "after its deadline", func(d *dishonest) int64 {
		_, by, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		d.Clock.Move(intents.MaxHold)
		return d.released(*d.held.Position, by, d.ben, cleo)
	}},
	{"approved-by-requester", "held", "hitl.approve: by one whom a rule of the hold accepts", "may approve", second(func(_ *dishonest, o *routertest.Intent) { o.User = "ana" })},
	{"approved-through-requesters-key", "held", "hitl.approve: by one whom a rule of the hold accepts", "may approve", second(keyOf("ana"))},
	{"approved-through-approvers-key", "held", "hitl.approve: each person approves once", "one person for four eyes", second(keyOf("ben"))},
	{"approved-by-disabled-user", "held", "every intent: a disabled user has no roles", "RBAC_FORBIDDEN", second(func(_ *dishonest, o *routertest.Intent) { o.User = "dora" })},
	{"approved-without-capability", "held", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", second(func(_ *dishonest, o *routertest.Intent) {
		o.User, o.Roles = "frank", []string{"user"}
	})},
	{"approved-with-lost-role", "held", "every intent: roles are those of the grant that the directory gives too", "RBAC_FORBIDDEN", second(func(_ *dishonest, o *routertest.Intent) { o.User = "frank" })},
	{"approved-by-unnamed-approver", "held", "hitl.approve: by one whom a rule of the hold accepts", "may approve", second(func(_ *dishonest, o *routertest.Intent) { o.User = "hugo" })},
	{"approved-twice", "held", "hitl.approve: each person approves once", "already", second(func(_ *dishonest, o *routertest.Intent) { o.User, o.Key = "ben", "again" })},
	{"approved-late", "held", "hitl.approve: before the deadline", "after its deadline", second(func(d *dishonest, o *routertest.Intent) {
		d.Clock.Move(intents.MaxHold)
		o.User = "cleo"
	})},
	{"approved-under-old-grant", "held", "hitl.approve: under a grant of the last five minutes", "approver was there", second(func(d *dishonest, o *routertest.Intent) {
		d.Clock.Move(6 * time.Minute)
		at := d.Clock.Now().Add(-6 * time.Minute).Unix()
		o.User, o.Grant = "cleo", func(g *intents.Grant) { g.IssuedAt, g.Expires = at, at+14*60 }
	})},
	{"approved-in-another-tenant", "held", "hitl.approve: the held intent is the tenant's", "no held intent of this tenant", second(func(_ *dishonest, o *routertest.Intent) {
		o.User, o.Tenant = "cleo", "acme"
	})},
	{"approved-by-task", "held", "every intent: the key's role may sign the type", "may not sign", second(func(d *dishonest, o *routertest.Intent) {
		o.User, o.By = "cleo", d.Planner
	})},
	{"approval-of-no-hold", "held", "hitl.approve: the intent is held", "no held intent", func(d *dishonest) int64 {
		o := routertest.Intent{User: "cleo", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.plan.Digest, Decision: catalog.DecisionApprove}}
		position, _, _ := d.says(o)
		return position
	}},
	{"release-of-no-hold", "held", "release: the intent is held", "not", func(d *dishonest) int64 {
		open, id := d.accept(d.finds("never held", ""), func(a *appended) { a.outcome = nil })
		return d.released(open, id, d.ben)
	}},
	{"released-twice", "released", "release: the intent is held", "not open", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben)
	}},
	{"approved-after-release", "released", "hitl.approve: the intent is held", "no held intent", func(d *dishonest) int64 {
		o := routertest.Intent{User: "cleo", Roles: []string{"approver"}, Key: "again"}
		position, _, _ := d.says(o)
		return position
	}},
	{"released-after-no", "rejected", "release: the intent is held", "not open", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben)
	}},
	{"released-by-revoked-approver", "held", "release: every approval counts by then", "revoked before", afterwards(func(d *dishonest) routertest.Intent {
		before := intents.FormatTime(d.Clock.Now())
		return routertest.Intent{By: d.Operator, Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: "default", Sub: "ben", Before: before}}
	})},
	{"released-by-former-approver", "held", "release: every approval counts by then", "directory does not give", afterwards(func(d *dishonest) routertest.Intent {
		u := catalog.User{UserID: "ben", Roles: []string{"user"}}
		return routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &u}}
	})},
	{"held-for-nothing", "running", "hold: it has a rule, and a deadline within a day", "what for", func(d *dishonest) int64 {
		return d.holds(intents.HoldTerms{Deadline: intents.FormatTime(d.Clock.Now().Add(time.Hour))})
	}},
	{"held-for-too-long", "running", "hold: it has a rule, and a deadline within a day", "more than a day", func(d *dishonest) int64 {
		return d.holds(intents.HoldTerms{
			Deadline: intents.FormatTime(d.Clock.Now().Add(intents.MaxHold + time.Second)),
			Rules:    []intents.HoldRule{{ID: "x", Reason: "x", Approvers: []string{"ben"}}},
		})
	}},
	{"rejected-by-nobody", "held", "outcome: rejected only where somebody said so", "nobody said so", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Failed, intents.ApprovalRejected)
	}},
	{"expired-early", "held", "outcome: expired only from the deadline on", "before its deadline", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Failed, intents.ApprovalExpired)
	}},
	{"task-of-held-intent", "waiting", "a task's intent: the task has not ended", "its task had ended: step.finish", func(d *dishonest) int64 {
		d.accepted(d.finishing("held"), pays)
		return d.accepted(d.task.CallIntent("feed", `{}`), func(a *appended) {
			a.decision.Effect, a.inputs.Task.Skills = string(catalog.Pure), []string{"pay"}
		})
	}},
}

// keyOf has cleo approve through another API key of somebody, which may assert users.
func keyOf(owner string) func(*dishonest, *routertest.Intent) {
	return func(d *dishonest, o *routertest.Intent) {
		d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
			ID: "another", Hash: intents.Digest([]byte("another")), UserID: owner, MaxRoles: []string{"approver"}, MayAssertUser: true,
		}}})
		o.User, o.Grant = "cleo", through("another")
	}
}

// lastApproval is the intent_id of the last hitl.approve of the scene.
func (d *dishonest) lastApproval() (id string) {
	d.Helper()
	for _, r := range d.Records() {
		envelope, err := intents.ReadSigned(r.Parts[storage.PartEnvelope])
		if err != nil {
			continue
		}
		if u, err := envelope.Open(); err == nil && u.Body().Intent.Type == "hitl.approve" {
			id = u.ID()
		}
	}
	return id
}
