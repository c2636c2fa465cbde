package audit_test

import (
	"encoding/json"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// The question to people in the scenes, and ben's edit of it.
var (
	asked = catalog.ApprovalAsk{Title: "Which shall I close?", Items: []catalog.AskItem{{ID: "berlin", Text: "Berlin"}, {ID: "oslo", Text: "Oslo"}}}
	other = catalog.ApprovalAsk{Title: "Shall I close Oslo?"}
)

// questioned begins a log with a plan whose task asks people and has no answer yet.
func (d *dishonest) questioned() {
	d.Helper()
	d.acme()
	d.Pin("feed", catalog.Pure)
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "frank", Roles: []string{"user"}}}), intents.OK)
	d.Approval(`{"skills":["feed"]}`, "ben")
	d.plan = d.NewPlan("plan_1")
	d.Want(d.plan.Open(), intents.OK)
	d.Want(d.plan.Claim(), intents.OK)
	steps := routertest.Steps(1, "feed", "feed")
	steps[1].InputFromStep, steps[1].Parallel = 0, true
	d.Want(d.plan.Plan(steps), intents.OK)
	d.start()
	d.held = d.Want(d.Do(d.task.Intent("approval.ask", asked)), intents.ApprovalRequired)
	d.Clock.Move(time.Second)
}

// alone begins a log with a call that waits for ana, who asked for it and is alone.
func (d *dishonest) alone() {
	d.Helper()
	d.begun("feed")
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"skills":["feed"]}`)}}), intents.OK)
	d.start()
	d.held = d.Want(d.Do(d.task.CallIntent("feed", `{}`)), intents.ApprovalRequired)
	d.Clock.Move(time.Second)
}

// edited is a question as above, after ben has made another question of it, and the next task has begun.
func (d *dishonest) edited() {
	d.Helper()
	d.questioned()
	d.Want(d.Do(d.edits("ben", other)), intents.OK)
	d.ben = intents.Approval{UserID: "ben", At: intents.FormatTime(d.Clock.Now()), Roles: []string{"approver"}}
	d.Want(d.task.Finish("held", "", ""), intents.OK)
	d.Clock.Move(time.Second)
	d.start()
}

// edits is somebody's edit of the held intent.
func (d *dishonest) edits(who string, args any) routertest.Intent {
	d.Helper()
	raw, err := json.Marshal(args)
	d.Must(err)
	o := d.approves(who)
	o.Args = catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionEdit, Args: raw}
	return o
}

// editsCall is ben's edit of the input of a held call.
func (d *dishonest) editsCall(input string) routertest.Intent {
	return d.edits("ben", catalog.SkillCall{Skill: "feed", Input: json.RawMessage(input)})
}

// questions is a question that names the edited one as its cause.
func (d *dishonest) questions(a catalog.ApprovalAsk) routertest.Intent {
	o := d.task.Intent("approval.ask", a)
	o.Ctx.Cause = d.held.IntentID
	return o
}

// waits makes an intent wait for the approvers.
func (d *dishonest) waits(rules ...intents.HoldRule) func(*appended) {
	if rules == nil {
		rules = []intents.HoldRule{{ID: intents.RuleAsk, Reason: "an agent asks people", Roles: []string{"approver"}}}
	}
	return func(a *appended) {
		a.decision.Verdict, a.decision.Code, a.outcome, a.decision.PolicyIDs = intents.Hold, intents.ApprovalRequired, nil, nil
		for _, rule := range rules {
			a.decision.PolicyIDs = append(a.decision.PolicyIDs, rule.ID)
		}
		a.decision.Hold = &intents.HoldTerms{Deadline: intents.FormatTime(d.Clock.Now().Add(intents.DefaultHold)), Rules: rules}
	}
}

// tenants is the rule of the tenant's data, which holds calls of feed.
func tenants(approvers ...string) intents.HoldRule {
	return intents.HoldRule{ID: "writ.skill.approval", Reason: "The tenant wants named people to approve calls of this skill.", Approvers: approvers, Count: 1, FourEyes: true}
}

// callHeld appends a call that waits for some of the tenant's approvers, and returns the held intent.
func (d *dishonest) callHeld(input string, approvers ...string) int64 {
	d.Helper()
	o := d.task.CallIntent("feed", input)
	if d.held != nil {
		o.Ctx.Cause = d.held.IntentID
	}
	position, id := d.accept(o, d.waits(tenants(approvers...)))
	d.held = &intents.Answer{IntentID: id}
	return position
}

// approver appends another approver.
func (d *dishonest) approver(who string) {
	d.Helper()
	d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: who, Roles: []string{"approver"}}}})
}

// counts releases an intent because of ben's edit alone.
func (d *dishonest) counts(o routertest.Intent) int64 {
	d.Helper()
	position := d.accepted(o, d.waits())
	return d.released(position, d.lastApproval(), d.ben)
}

// answersLegally continues from these scenes.
func (d *dishonest) answersLegally(scene string) {
	d.Helper()
	switch scene {
	case "questioned":
		_, by, ben := d.says(routertest.Intent{User: "ben", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove, Items: []string{"oslo"}}})
		ben.Items = []string{"oslo"}
		d.released(*d.held.Position, by, ben)
	case "edited":
		d.counts(d.questions(other))
	}
}

const (
	byEdit   = "release: by names the last approval"
	editRule = "hitl.approve: an edit is of a task's intent that is shown whole, opens no task and is no node's of a run (but an agent's); it has other arguments and the same skill"
	meetable = "hold: the tenant's people could meet each of its rules"
)

// taskOf appends another task, of a step.
func (d *dishonest) taskOf(step int) {
	d.Helper()
	var next *routertest.Task
	d.accepted(d.step(step, func(t *routertest.Task, _ *catalog.Step) { next = t }))
	d.task, d.deadline = next, d.Clock.Now().Add(5*time.Minute).Format(time.RFC3339)
}

// saysSo is d.says of an intent of which only the position counts.
func (d *dishonest) saysSo(o routertest.Intent) int64 {
	d.Helper()
	position, _, _ := d.says(o)
	return position
}

// approvalMisdeeds count decisions that people did not make, or ask people who do not exist.
var approvalMisdeeds = []misdeed{
	{"edit-counted-for-other-arguments", "edited", byEdit, "last approval", func(d *dishonest) int64 {
		return d.counts(d.questions(catalog.ApprovalAsk{Title: "Shall I close all?"}))
	}},
	{"edit-counted-without-cause", "edited", byEdit, "last approval", func(d *dishonest) int64 {
		return d.counts(d.task.Intent("approval.ask", other))
	}},
	{"edit-counted-in-another-step", "edited", byEdit, "last approval", func(d *dishonest) int64 {
		d.taskOf(2)
		return d.counts(d.questions(other))
	}},
	{"edit-counted-for-another-type", "edited", byEdit, "last approval", func(d *dishonest) int64 {
		d.approver("cleo")
		return d.released(d.callHeld(`{}`, "ben", "cleo"), d.lastApproval(), d.ben)
	}},
	{"edit-counted-twice", "edited", byEdit, "last approval", func(d *dishonest) int64 {
		d.counts(d.questions(other))
		again := d.questions(other)
		again.Ctx.Occurrence = 1
		return d.counts(again)
	}},
	{"edit-counted-late", "edited", byEdit, "last approval", func(d *dishonest) int64 {
		d.Clock.Move(intents.MaxHold - time.Minute) // with a task of then
		d.accepted(d.plan.ClaimIntent(2))
		d.plan.Epoch = 2
		d.taskOf(1)
		d.Clock.Move(time.Minute)
		return d.counts(d.questions(other))
	}},
	{"editor-counted-for-four-eyes", "edited", "release: the approvals satisfy every rule of the hold", "without the approvals", func(d *dishonest) int64 {
		d.approver("cleo")
		held := d.callHeld(`{}`, "ben", "cleo")
		_, by, yes := d.says(d.editsCall(`{"n":1}`))
		d.ends(held, intents.Failed, intents.Changed)
		return d.released(d.callHeld(`{"n":1}`, "ben", "cleo"), by, yes)
	}},
	{"approved-by-a-key-of-programs", "alone", "hitl.approve: by one whom a rule of the hold accepts", "in person", func(d *dishonest) int64 {
		d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
			ID: "programs", Hash: intents.Digest([]byte("programs")), UserID: "ana", MaxRoles: []string{"approver"},
		}}})
		position, by, ana := d.says(routertest.Intent{User: "ana", Roles: []string{"approver"}, Grant: through("programs")})
		d.released(*d.held.Position, by, ana)
		return position
	}},
	{"edited-by-unnamed-approver", "questioned", "hitl.approve: by one whom a rule of the hold accepts", "may approve", func(d *dishonest) int64 {
		o := d.edits("frank", other)
		o.Roles = []string{"approver"}
		d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "second", Capabilities: []string{"runs:approve"}}}})
		d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "gil", Roles: []string{"second"}}}})
		o.User, o.Roles = "gil", []string{"second"}
		return d.saysSo(o)
	}},
	{"edit-of-no-hold", "edited", "hitl.approve: the intent is held", "no held intent", func(d *dishonest) int64 {
		o := d.edits("ben", asked)
		o.Key = "again"
		return d.saysSo(o)
	}},
	{"edit-to-the-same", "questioned", editRule, "approve it", func(d *dishonest) int64 {
		return d.saysSo(d.edits("ben", asked))
	}},
	{"edit-to-another-skill", "questioned", editRule, "keeps the skill", func(d *dishonest) int64 {
		d.approver("cleo")
		d.callHeld(`{}`, "ben", "cleo")
		return d.saysSo(d.edits("ben", catalog.SkillCall{Skill: "pay"}))
	}},
	{"edit-that-nobody-can-approve", "questioned", "hitl.approve: others than the editors could meet what the edit waits for", "nobody else could meet", func(d *dishonest) int64 {
		d.callHeld(`{}`, "ben")
		return d.saysSo(d.editsCall(`{"n":1}`))
	}},
	{"changed-by-nobody", "questioned", "outcome: changed only where somebody has edited the intent", "nobody has edited", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Failed, intents.Changed)
	}},
	{"asked-and-not-held", "questioned", "approval.ask: it waits for one whom it names, or for a role that may approve", "did not wait", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("approval.ask", other), func(a *appended) { a.result = catalog.ApprovalAskResult{Approved: []catalog.ApprovedItems{}} })
	}},
	{"asked-of-others", "questioned", "approval.ask: it waits for one whom it names, or for a role that may approve", "did not wait", func(d *dishonest) int64 {
		a := other
		a.Approvers = []string{"cleo"}
		return d.accepted(d.task.Intent("approval.ask", a), d.waits())
	}},
	{"asked-of-doubled-items", "questioned", "approval.ask: each item has its own id", "has this id", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("approval.ask", catalog.ApprovalAsk{Title: "Which?", Items: []catalog.AskItem{{ID: "a", Text: "A"}, {ID: "a", Text: "B"}}}), d.waits())
	}},
	{"yes-to-what-nobody-asked", "questioned", "hitl.approve: its items are ones that the intent asks about", "does not ask about", func(d *dishonest) int64 {
		return d.saysSo(routertest.Intent{User: "ben", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove, Items: []string{"rome"}}})
	}},
	{"released-with-other-items", "questioned", "release: every approval was given", "other items", func(d *dishonest) int64 {
		_, by, ben := d.says(routertest.Intent{User: "ben", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove, Items: []string{"oslo"}}})
		return d.released(*d.held.Position, by, ben)
	}},
	{"answered-by-nobody", "questioned", "outcome: the answer to a question is what people said", "not what people said", func(d *dishonest) int64 {
		_, by, ben := d.says(d.approves("ben"))
		d.releases(*d.held.Position, by, ben)
		return d.answers(*d.held.Position, catalog.ApprovalAskResult{Approved: []catalog.ApprovedItems{{UserID: "cleo", At: ben.At, Items: []string{"berlin", "oslo"}}}})
	}},
	{"answered-with-more-items", "questioned", "outcome: the answer to a question is what people said", "not what people said", func(d *dishonest) int64 {
		o := d.approves("ben")
		o.Args = catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove, Items: []string{"oslo"}}
		_, by, ben := d.says(o)
		ben.Items = []string{"oslo"}
		d.releases(*d.held.Position, by, ben)
		return d.answers(*d.held.Position, catalog.ApprovalAskResult{Approved: []catalog.ApprovedItems{{UserID: "ben", At: ben.At, Items: []string{"berlin", "oslo"}}}})
	}},
	{"approved-at-another-node", "questioned", "hitl.approve: the intent waits at the node that it names", "does not wait at this node", func(d *dishonest) int64 {
		return d.saysSo(routertest.Intent{User: "ben", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.held.IntentID, RunID: d.plan.ID, NodeID: "2", Decision: catalog.DecisionApprove}})
	}},
	{"held-though-nobody-can-approve", "questioned", meetable, "nobody could meet", func(d *dishonest) int64 {
		return d.callHeld(`{}`, "frank")
	}},
	{"agents-that-nobody-approves", "agent", "registry.push: somebody could approve each call that its agents hold", "nobody could approve", func(d *dishonest) int64 {
		return d.pushes("default", 3, strings.Replace(shopAgent, "name: list", "name: list, approval: {roles: [auditor]}", 1), nil)
	}},
}
