package audit_test

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// stands begins a log with a call that ana, who is alone, has approved for two later calls with any n.
func (d *dishonest) stands() {
	d.Helper()
	d.begun("feed")
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"skills":["feed"]}`)}}), intents.OK)
	d.start()
	d.held = d.Want(d.Do(d.task.CallIntent("feed", `{"city":"oslo","n":1}`)), intents.ApprovalRequired)
	d.Clock.Move(time.Second)
	d.Want(d.Do(routertest.Intent{
		By: d.Gateway, Type: "hitl.approve", User: "ana", Roles: []string{"approver"}, Ctx: intents.Context{TurnID: "approval"}, Key: "also",
		Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove, Also: &catalog.Also{Uses: 2, WithinSec: 120, Free: []string{"n"}}},
	}), intents.OK)
	d.ben = intents.Approval{UserID: "ana", At: intents.FormatTime(d.Clock.Now()), Roles: []string{"approver"}}
	d.Want(d.Do(d.again(`{"city":"oslo","n":2}`, 1)), intents.OK) // the router lets it through
	d.Clock.Move(time.Second)
}

// again is a later call.
func (d *dishonest) again(input string, n int) routertest.Intent {
	o := d.task.CallIntent("feed", input)
	o.Ctx.Occurrence = n
	return o
}

// standing names the approval as one that lets an intent through.
func (d *dishonest) standing(changes ...func(*intents.DecisionInputs)) func(*appended) {
	return func(a *appended) {
		a.inputs.Standing, a.inputs.Approvals = d.held.IntentID, []intents.Approval{d.ben}
		for _, change := range changes {
			change(&a.inputs)
		}
	}
}

const countsFor = "skill.call: a standing approval counts for a call of its user, session and skill with an input that it allows, in its time and number"

var standingMisdeeds = []misdeed{
	{"standing-for-another-input", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		return d.accepted(d.again(`{"city":"rome","n":3}`, 2), d.standing())
	}},
	{"standing-for-one-more-member", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		return d.accepted(d.again(`{"city":"oslo","n":3,"all":true}`, 2), d.standing())
	}},
	{"standing-used-up", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.standing())
		return d.accepted(d.again(`{"city":"oslo","n":4}`, 3), d.standing())
	}},
	{"standing-late", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		d.Clock.Move(2 * time.Minute)
		return d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.standing())
	}},
	{"standing-of-nobody", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		return d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.standing(func(f *intents.DecisionInputs) { f.Standing = d.plan.Digest }))
	}},
	{"standing-as-another", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		return d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.standing(func(f *intents.DecisionInputs) { f.Approvals[0].UserID = "ben" }))
	}},
	{"standing-unnamed", "standing", "every intent: an intent that did not wait names approvals only with the standing one", "no standing one", func(d *dishonest) int64 {
		return d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.standing(func(f *intents.DecisionInputs) { f.Standing = "" }))
	}},
	{"standing-while-held", "standing", "every intent: an intent that did not wait names approvals only with the standing one", "no standing one", func(d *dishonest) int64 {
		return d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.waits(intents.HoldRule{
			ID: "writ.skill.approval", Reason: tenants().Reason, Approvers: []string{"ana"}, Count: 1, InPerson: true,
		}), d.standing())
	}},
	{"standing-for-no-call", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("skill.load", catalog.SkillLoad{Skills: []string{"feed"}}), d.standing(), func(a *appended) {
			a.result = catalog.SkillLoadResult{Skills: []catalog.Manifest{}}
			a.inputs.Skill = &intents.SkillInput{Name: "feed", Digest: intents.Digest([]byte("feed")), Effect: string(catalog.Pure), Trusted: true, OpenWorld: intents.No}
		})
	}},
	{"standing-withdrawn", "standing", countsFor, "does not count", func(d *dishonest) int64 {
		d.says(d.withdraws())
		return d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.standing())
	}},
	{"withdrawn-twice", "standing", "hitl.approve: withdraw names an approval that stands", "no standing approval", func(d *dishonest) int64 {
		d.says(d.withdraws())
		o := d.withdraws()
		o.Key = "again"
		return d.saysSo(o)
	}},
	{"standing-of-four-eyes", "questioned", "hitl.approve: also is of a call that nobody must look at each time", "of each call", func(d *dishonest) int64 {
		d.callHeld(`{}`, "ben")
		return d.saysSo(routertest.Intent{User: "ben", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove, Also: &catalog.Also{Uses: 2, WithinSec: 120}}})
	}},
	{"standing-of-what-destroys", "alone", "hitl.approve: also is of a call that nobody must look at each time", "may destroy", func(d *dishonest) int64 {
		d.accepted(routertest.Intent{By: d.Operator, Type: "skill.approve", Args: catalog.SkillApprove{Tenant: "default", Skill: "feed", Digest: intents.Digest([]byte("feed")), Effect: catalog.Idempotent}})
		return d.also(catalog.Also{Uses: 2, WithinSec: 120})
	}},
	{"standing-of-another-pin", "alone", "hitl.approve: also is of a call that nobody must look at each time", "not the one", func(d *dishonest) int64 {
		d.accepted(routertest.Intent{By: d.Operator, Type: "skill.approve", Args: catalog.SkillApprove{Tenant: "default", Skill: "feed", Digest: intents.Digest([]byte("feed 2")), Effect: catalog.Pure}})
		return d.also(catalog.Also{Uses: 2, WithinSec: 120})
	}},
	{"standing-of-what-is-untrusted", "alone", "hitl.approve: also is of a call that nobody must look at each time", "untrusted", func(d *dishonest) int64 {
		d.accepted(routertest.Intent{By: d.Operator, Type: "skill.approve", Args: catalog.SkillApprove{Tenant: "default", Skill: "feed", Digest: intents.Digest([]byte("feed")), Effect: catalog.Pure}})
		return d.also(catalog.Also{Uses: 2, WithinSec: 120})
	}},
	{"standing-with-any-of-nothing", "alone", "hitl.approve: free names members of the input", "has no member", func(d *dishonest) int64 {
		return d.also(catalog.Also{Uses: 2, WithinSec: 120, Free: []string{"n"}})
	}},
}

func (d *dishonest) withdraws() routertest.Intent {
	return routertest.Intent{User: "ana", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionWithdraw}}
}

// also appends ana's yes for later calls, too.
func (d *dishonest) also(a catalog.Also) int64 {
	d.Helper()
	return d.saysSo(routertest.Intent{User: "ana", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove, Also: &a}})
}
