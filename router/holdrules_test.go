package router_test

import (
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
)

// rules is a world with one more module of hold rules, and its people.
func rules(t *testing.T, hold string) *routertest.World {
	t.Helper()
	w := rulesOf(t, hold)
	people(w)
	return w
}

// rulesOf is the same without people.
func rulesOf(t *testing.T, hold string) *routertest.World {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	holds(w, hold)
	return w
}

// holds adds a module of hold rules.
func holds(w *routertest.World, hold string) {
	w.Helper()
	_, err := w.Policy.ReplaceTree(w.Context(), policies.Tree{Source: with("package writ.ext.ours\n\n# METADATA\n# title: Ours\n# description: We want to know.\n# custom:\n#   id: ext.ours\nhold contains " + hold + "\n")}, w.Router.SelfProof)
	w.Must(err)
	w.Must(w.Router.PolicyChanged(w.Context()))
}

// A rule may name roles: whoever has one today may approve, appointed before or after.
func TestHoldByRole(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "roles": ["approver"], "count": 2, "four_eyes": true} if input.intent.type == "skill.call"`)
	x := releaseWorld{w, started(w, catalog.Once), nil}
	x.held = w.Want(x.task.Call("feed", `{}`), intents.ApprovalRequired)
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	user(w, "ana", "user", "approver") // the requester is an approver by now, and has a key of her own
	w.Want(x.says("ana", catalog.DecisionApprove), intents.RBACForbidden)
	user(w, "dora", "approver")
	if got := x.state(x.says("dora", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
}

// A tenant's policy need not read approvals: the router counts them. It may shorten the deadline,
// let the requester approve, and mask what people see.
func TestHoldTerms(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ana"], "within_sec": 60, "mask": ["/input/card", "/input/items/*/secret"]} if input.intent.type == "skill.call"`)
	user(w, "ana", "user", "approver")
	x := releaseWorld{w, started(w, catalog.Once), nil}
	x.held = w.Want(x.task.Call("feed", `{"card":"4111","n":1,"items":[{"secret":"s1","k":2}]}`), intents.ApprovalRequired)
	if got := x.held.Decision.Hold.Deadline; got != "2026-11-20T10:01:00.000Z" {
		t.Errorf("deadline %s", got)
	}
	if x.held.Approval != "/v1/approvals/"+x.held.IntentID {
		t.Errorf("approval at %q", x.held.Approval)
	}
	page, err := w.Router.Inbox(t.Context(), intents.Grant{Subject: "ana", Tenant: "default", Roles: []string{"user", "approver"}}, bus.ApprovalsRequest{})
	w.Must(err)
	if len(page.Approvals) != 1 {
		t.Fatalf("%+v", page)
	}
	h := page.Approvals[0]
	if args := string(h.Args); strings.Contains(args, "4111") || strings.Contains(args, "s1") || !strings.Contains(args, `"k":2`) || !strings.Contains(args, `"card":"[masked]"`) {
		t.Errorf("shown %s", args)
	}
	if !h.MayDecide || !h.Mine || h.Rules[0].Satisfied {
		t.Errorf("%+v", h)
	}
	if got := x.state(x.says("ana", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
}

// A held intent of the router has its effect at its release: a held plan is opened then, and waits
// for a driver.
func TestReleaseOfAPlan(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "plan.open"`)
	p := w.NewPlan("p1")
	x := releaseWorld{w, nil, w.Want(p.Open(), intents.ApprovalRequired)}
	w.Want(p.Claim(), intents.TaskScope) // there is no such plan yet
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
	if got := w.Dir.Silent(0); len(got) != 1 || got[0].Plan.PlanID != routertest.PlanID("p1") || got[0].Roles[0] != "user" {
		t.Errorf("silent %+v", got)
	}
	p = p.On(w.Restart())
	p.Want(p.Claim(), intents.OK)
	if got := p.Dir.Silent(0); len(got) != 0 {
		t.Errorf("claimed and silent %+v", got)
	}
}

// A plan that is impossible by then ends.
func TestReleaseOfAnImpossiblePlan(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if {
	input.intent.type == "plan.open"
	input.context.labels.careful == "yes"
}`)
	p := w.NewPlan("p1")
	o := p.OpenIntent()
	o.Ctx.Labels = map[string]string{"careful": "yes"}
	x := releaseWorld{w, nil, w.Want(w.Do(o), intents.ApprovalRequired)}
	other := p.OpenIntent()
	other.Key = "another"
	w.OK(other)
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalEnded || got.Code != intents.MalformedArgs {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.MalformedArgs)
}

// TestHoldInPerson: in person nobody approves by a key of programs or an access token, which programs
// have, too.
func TestHoldInPerson(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "roles": ["approver"], "in_person": true} if input.intent.type == "skill.call"`)
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
		ID: "desk", Hash: intents.Digest([]byte("desk")), UserID: "ben", MaxRoles: []string{"approver"}, InPerson: true,
	}}), intents.OK)
	x := releaseWorld{w, started(w, catalog.Once), nil}
	x.held = w.Want(x.task.Call("feed", `{}`), intents.ApprovalRequired)
	for _, by := range []struct {
		client string
		want   intents.Code
	}{{"apikey:ben", intents.RBACForbidden}, {intents.CallerByToken("https://login.example", "s-ben"), intents.RBACForbidden}, {"apikey:desk", intents.OK}} {
		o := x.word("ben", catalog.DecisionApprove)
		o.Grant = func(g *intents.Grant) { g.Act.Client = by.client }
		if a := w.Do(o); a.Code != by.want || a.Code != intents.OK && !strings.Contains(a.Reason, "in person") {
			t.Errorf("%s: %s %s", by.client, a.Code, a.Reason)
		}
	}
	w.Want(x.outcome(), intents.OK)
	w.Restart()
}

// A hold on an approval denies it: nobody approves approvals.
func TestApprovalIsNeverHeld(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type in {"skill.call", "hitl.approve"}`)
	x := releaseWorld{w, started(w, catalog.Once), nil}
	x.held = w.Want(x.task.Call("feed", `{}`), intents.ApprovalRequired)
	a := w.Want(x.says("ben", catalog.DecisionApprove), intents.PolicyDenied)
	if len(a.Decision.PolicyIDs) != 1 || a.Decision.PolicyIDs[0] != "ext.ours" {
		t.Errorf("%+v", a.Decision)
	}
}

// The inbox shows people what they may see, newest first, page by page.
func TestInbox(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	second := w.NewPlan("p2")
	second.User = "dora"
	for _, a := range []*intents.Answer{second.Open(), second.Claim(), second.Plan(routertest.Steps(1, "pay"))} {
		w.Want(a, intents.OK)
	}
	w.Want(second.Started(1).Call("pay", `{"n":2}`), intents.ApprovalRequired)
	seen := func(user string, q bus.ApprovalsRequest, roles ...string) bus.ApprovalsReply {
		page, err := w.Router.Inbox(t.Context(), intents.Grant{Subject: user, Tenant: "default", Roles: roles}, q)
		w.Must(err)
		return page
	}
	for name, c := range map[string]struct {
		page bus.ApprovalsReply
		want int
	}{
		"an approver":      {seen("ben", bus.ApprovalsRequest{}, "approver"), 2},
		"of one type":      {seen("ben", bus.ApprovalsRequest{Type: "plan.open"}, "approver"), 0},
		"one of them":      {seen("ben", bus.ApprovalsRequest{IntentID: x.held.IntentID}, "approver"), 1},
		"mine alone":       {seen("ben", bus.ApprovalsRequest{Mine: true}, "approver"), 0},
		"who asked":        {seen("ana", bus.ApprovalsRequest{}, "user"), 1},
		"without the role": {seen("ben", bus.ApprovalsRequest{}, "user"), 0},
		"a stranger":       {seen("emil", bus.ApprovalsRequest{}, "user", "approver"), 0},
		"another tenant's ben": {func() bus.ApprovalsReply {
			p, _ := w.Router.Inbox(t.Context(), intents.Grant{Subject: "ben", Tenant: "acme", Roles: []string{"approver"}}, bus.ApprovalsRequest{})
			return p
		}(), 0},
	} {
		if len(c.page.Approvals) != c.want {
			t.Errorf("%s: %+v", name, c.page)
		}
	}
	first := seen("ben", bus.ApprovalsRequest{Limit: 1}, "approver")
	then := seen("ben", bus.ApprovalsRequest{Limit: 1, After: first.Cursor}, "approver")
	if len(first.Approvals) != 1 || first.Approvals[0].UserID != "dora" || len(then.Approvals) != 1 || then.Approvals[0].UserID != "ana" || then.Cursor != "" {
		t.Errorf("%+v, then %+v", first, then)
	}
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	if got := seen("ben", bus.ApprovalsRequest{}, "approver"); len(got.Approvals) != 1 {
		t.Errorf("after one was decided: %+v", got)
	}
	w.Clock.Move(intents.MaxHold)
	if got := seen("ben", bus.ApprovalsRequest{}, "approver"); len(got.Approvals) != 0 {
		t.Errorf("past the deadline: %+v", got)
	}
	for _, q := range []bus.ApprovalsRequest{{After: "x"}, {After: "-2"}, {Limit: 101}, {Limit: -1}} {
		if _, err := w.Router.Inbox(t.Context(), intents.Grant{Subject: "ben", Tenant: "default"}, q); intents.CodeOf(err) != intents.SchemaInvalid {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
