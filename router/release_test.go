package router_test

import (
	"crypto/rand"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// releaseWorld is a once skill of default that needs approval: ben and cleo are its approvers, ana
// is the requester through the API key k1.
type releaseWorld struct {
	*routertest.World
	task *routertest.Task
	held *intents.Answer
}

func (x releaseWorld) on(w *routertest.World) releaseWorld {
	x.World, x.task = w, &routertest.Task{Plan: x.task.On(w), TaskID: x.task.TaskID, Key: x.task.Key, Step: x.task.Step, Revision: x.task.Revision}
	return x
}

// people puts API keys and the rows of ben, cleo and dora.
func people(w *routertest.World) {
	w.Helper()
	for _, id := range []string{"k1", "k2", "ana", "ben", "cleo", "dave", "dora", "emil", "fay"} {
		apiKey(w, id)
	}
	for _, who := range []string{"ben", "cleo"} {
		user(w, who, "approver")
	}
	user(w, "dora", "user")
}

// apiKey puts the API key of a person, or k1 or k2, which may name anybody.
func apiKey(w *routertest.World, id string) {
	w.Helper()
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
		ID: id, Hash: intents.Digest([]byte(id)), UserID: id, MaxRoles: []string{"user", "approver"}, MayAssertUser: id == "k1" || id == "k2",
	}}), intents.OK)
}

func user(w *routertest.World, who string, roles ...string) {
	w.Helper()
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: who, Roles: roles}}), intents.OK)
}

// heldCall makes a skill of an effect need approval, as the tenant's data says.
func heldCall(w *routertest.World, effect catalog.Effect, approval string) releaseWorld {
	w.Helper()
	people(w)
	w.Pin("pay", effect)
	w.Data("approval", approval)
	task := w.Begun("p1", "pay", "pay").Started(1)
	x := releaseWorld{w, task, w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)}
	w.Want(task.Finish("held", "", ""), intents.OK)
	return x
}

// says is one person's decision on the held intent, through the gateway.
func (x releaseWorld) says(who, decision string) *intents.Answer {
	x.Helper()
	return x.Do(x.word(who, decision))
}

func (x releaseWorld) word(who, decision string) routertest.Intent {
	a := catalog.Approve{IntentID: x.held.IntentID, Decision: decision}
	if decision != catalog.DecisionApprove {
		a.Reason = "not today"
	}
	return routertest.Intent{
		By: x.Gateway, Type: "hitl.approve", Args: a, User: who, Roles: []string{"approver"}, Ctx: intents.Context{TurnID: rand.Text()},
		Grant: func(g *intents.Grant) { g.Act.Client = "apikey:" + who },
	}
}

// state is what an approval made of the held intent.
func (x releaseWorld) state(a *intents.Answer) catalog.ApproveResult {
	x.Helper()
	return routertest.Result[catalog.ApproveResult](x.World, a)
}

// outcome waits for the end of the held intent.
func (x releaseWorld) outcome() *intents.Answer {
	x.Helper()
	a, err := x.Router.Await(x.Context(), *x.held.Position)
	x.Must(err)
	return a
}

// Once approved, the intent is executed once, the equal intent of the step's next task gets its
// result, and the plan continues.
func TestRelease(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	got := x.state(x.says("ben", catalog.DecisionApprove))
	if got.State != catalog.ApprovalReleased || len(got.Approved) != 1 || got.Approved[0] != "ben" || len(got.Missing) != 0 {
		t.Errorf("%+v", got)
	}
	out := w.Want(x.outcome(), intents.OK)
	if r := receipt(w, out); r.Code != intents.OK || r.IntentID != x.held.IntentID || r.OutcomeDigest == "" {
		t.Errorf("receipt %+v", r)
	}
	calls := w.Bus.Calls("skill.call")
	if len(calls) != 1 || calls[0].Ticket.Position != *x.held.Position || calls[0].Ticket.IntentID != x.held.IntentID || calls[0].Ticket.PolicyDigest != w.Policy.Engine().Digest() {
		t.Fatalf("calls %+v", calls)
	}
	if got := w.Dir.Silent(0); len(got) != 1 {
		t.Errorf("silent %+v", got)
	}
	p := x.task.Plan
	v := routertest.Result[catalog.PlanView](w, p.Claim())
	if v.Steps[0].Status != catalog.StepPending || v.IntentHistory[0].Status != "done" || v.ReplanCount != 0 {
		t.Errorf("%+v", v)
	}
	again := p.Started(1)
	if dup := w.Want(again.Call("pay", `{"n":1}`), intents.OK); !dup.Replayed || dup.IntentID != x.held.IntentID {
		t.Errorf("%+v", dup)
	}
	if n := len(w.Bus.Calls("skill.call")); n != 1 {
		t.Errorf("%d effects", n)
	}
	w.OK(again.Intent("write_memory", catalog.WriteMemory{Label: "result", From: x.held.IntentID}))
	w.Want(again.Finish("done", again.MemoryKey("result"), ""), intents.OK)
	w.Want(x.says("cleo", catalog.DecisionApprove), intents.MalformedArgs) // no approval is pending any more
}

// Every rule that an approval must meet.
func TestApprovalRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *routertest.World, x *releaseWorld, o *routertest.Intent)
		want   intents.Code
	}{
		"unknown id": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			o.Args = catalog.Approve{IntentID: intents.Digest([]byte("other")), Decision: catalog.DecisionApprove}
		}, intents.MalformedArgs},
		"not held": {func(w *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			done := w.OK(routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}})
			o.Args = catalog.Approve{IntentID: done.IntentID, Decision: catalog.DecisionApprove}
		}, intents.MalformedArgs},
		"a run": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			o.Args = catalog.Approve{RunID: "r", NodeID: "n", Decision: catalog.DecisionApprove}
		}, intents.SchemaInvalid},
		"neither intent nor node": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			o.Args = catalog.Approve{Decision: catalog.DecisionApprove}
		}, intents.SchemaInvalid},
		"no reason for a no": {func(_ *routertest.World, x *releaseWorld, o *routertest.Intent) {
			o.Args = catalog.Approve{IntentID: x.held.IntentID, Decision: catalog.DecisionReject}
		}, intents.SchemaInvalid},
		"another tenant's": {func(w *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
			o.Tenant, o.Grant = "acme", func(g *intents.Grant) { g.Act.Client = "elsewhere" }
		}, intents.MalformedArgs},
		"the operator of system": {func(w *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			*o = routertest.Intent{By: w.Operator, Type: o.Type, Args: o.Args}
		}, intents.MalformedArgs},
		"not an approver": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			o.User, o.Roles = "dora", []string{"user"}
		}, intents.RBACForbidden},
		"not named, though an approver by the grant": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) { o.User = "emil" }, intents.RBACForbidden},
		"the one who asked": {func(w *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			user(w, "ana", "user", "approver")
			o.User, o.Roles = "ana", []string{"user", "approver"}
		}, intents.RBACForbidden},
		"without the role any more": {func(w *routertest.World, _ *releaseWorld, _ *routertest.Intent) {
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "approver", Capabilities: []string{}}}), intents.OK)
		}, intents.RBACForbidden},
		"disabled": {func(w *routertest.World, _ *releaseWorld, _ *routertest.Intent) {
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"approver"}, Disabled: true}}), intents.OK)
		}, intents.RBACForbidden},
		"an old grant": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			o.Grant = func(g *intents.Grant) {
				g.Act.Client, g.IssuedAt, g.Expires = "apikey:ben", g.IssuedAt-301, g.Expires-301
			}
		}, intents.GrantInvalid},
		"a standing grant": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			o.Ctx.PlanID, o.Grant = routertest.PlanID("p1"), func(g *intents.Grant) { g.For = "plan:" + routertest.PlanID("p1") }
		}, intents.TaskScope}, // the plan is ana's; see TestStandingGrantApprovesNothing
		"nobody says how it was authenticated": {func(_ *routertest.World, _ *releaseWorld, o *routertest.Intent) {
			o.Grant = func(g *intents.Grant) { g.Act.AMR = nil }
		}, intents.GrantInvalid},
		"revoked grants": {func(w *routertest.World, _ *releaseWorld, _ *routertest.Intent) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ben", Before: w.Clock.Now().Add(1e9).Format("2006-01-02T15:04:05Z07:00")}), intents.OK)
		}, intents.GrantInvalid},
		"by a manager":       {func(w *routertest.World, _ *releaseWorld, o *routertest.Intent) { o.By = w.Manager }, intents.KeyRole},
		"after the deadline": {func(w *routertest.World, _ *releaseWorld, _ *routertest.Intent) { w.Clock.Move(intents.MaxHold) }, intents.MalformedArgs},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			x := heldCall(w, catalog.Once, `{"once":true}`)
			o := x.word("ben", catalog.DecisionApprove)
			c.change(w, &x, &o)
			if a := w.Do(o); a.Code != c.want {
				t.Errorf("%s: %s %s", a.Code, a.Pointer, a.Reason)
			}
			h, err := w.Journal.Holder(t.Context(), *x.held.Position)
			w.Must(err)
			if h.State != storage.StateHeld {
				t.Errorf("the intent is %s", h.State)
			}
		})
	}
}

// The plan's own standing grant approves nothing, whoever its user is.
func TestStandingGrantApprovesNothing(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	p := w.NewPlan("p2")
	p.User, p.Roles = "ben", []string{"user", "approver"}
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: p.Roles}}), intents.OK)
	w.Want(p.Open(), intents.OK)
	o := x.word("ben", catalog.DecisionApprove)
	o.Ctx.PlanID, o.Grant = routertest.PlanID("p2"), func(g *intents.Grant) { g.For = "plan:" + routertest.PlanID("p2") }
	w.Want(w.Do(o), intents.GrantInvalid)
}

// Two of three, in any order, each person once.
func TestTwoOfThree(t *testing.T) {
	for _, order := range [][]string{{"ben", "cleo"}, {"cleo", "ben"}, {"fay", "cleo"}} {
		w := routertest.New(t, routertest.Options{})
		user(w, "fay", "approver")
		x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
		if got := x.state(x.says(order[0], catalog.DecisionApprove)); got.State != catalog.ApprovalPending || cmp.Diff([]string{"writ.skill.once"}, got.Missing) != "" {
			t.Errorf("after one: %+v", got)
		}
		w.Want(x.says(order[0], catalog.DecisionApprove), intents.MalformedArgs)
		if n := len(w.Bus.Calls("skill.call")); n != 0 {
			t.Fatalf("%d effects after one approval", n)
		}
		got := x.state(x.says(order[1], catalog.DecisionApprove))
		if got.State != catalog.ApprovalReleased || cmp.Diff(order, got.Approved) != "" {
			t.Errorf("after two: %+v", got)
		}
		w.Want(x.outcome(), intents.OK)
	}
}

// A person with an API key that may name users can be any of them: for four eyes all that come
// through one key, or through keys of one owner, are one with the owner, including the requester.
func TestFourEyesNeedTwoKeys(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true,"count":2}`) // ana asked, through k1
	through := func(key, who, decision string) *intents.Answer {
		o := x.word(who, decision)
		o.Grant = func(g *intents.Grant) { g.Act.Client = intents.ClientOf(key) }
		return w.Do(o)
	}
	may := func(key, who string) bool {
		page, err := w.Router.Inbox(t.Context(), intents.Grant{Subject: who, Tenant: "default", Roles: []string{"approver"}, Act: intents.Act{Client: intents.ClientOf(key)}}, bus.ApprovalsRequest{})
		w.Must(err)
		return len(page.Approvals) == 1 && page.Approvals[0].MayDecide
	}
	if may("k1", "ben") || !may("k2", "ben") {
		t.Errorf("the inbox says that ben may decide through the key of the one who asked, or not through another one")
	}
	for _, decision := range []string{catalog.DecisionApprove, catalog.DecisionReject} {
		w.Want(through("k1", "ben", decision), intents.RBACForbidden)
	}
	if got := x.state(through("k2", "ben", catalog.DecisionApprove)); got.State != catalog.ApprovalPending {
		t.Errorf("%+v", got)
	}
	w.Want(through("k2", "cleo", catalog.DecisionApprove), intents.RBACForbidden)
	for id, owner := range map[string]string{"anas": "ana", "bens": "ben", "k1s": "k1", "k2s": "k2"} { // each owner is one with whom a key asserts
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
			ID: id, Hash: intents.Digest([]byte(id)), UserID: owner, MaxRoles: []string{"approver"}, MayAssertUser: true,
		}}), intents.OK)
		if may(id, "cleo") == (owner == "ana" || owner == "k1") {
			t.Errorf("the inbox says the wrong thing of a key of %s", owner)
		}
		w.Want(through(id, "cleo", catalog.DecisionApprove), intents.RBACForbidden)
	}
	if n := len(w.Bus.Calls("skill.call")); n != 0 {
		t.Fatalf("%d effects after one pair of eyes", n)
	}
	if got := x.state(through("cleo", "cleo", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
}

// A rule without four eyes counts people, through whatever key.
func TestOneKeyForAll(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "roles": ["approver"], "count": 2} if input.intent.type == "skill.call"`)
	x := releaseWorld{w, started(w, catalog.Once), nil}
	x.held = w.Want(x.task.Call("feed", `{}`), intents.ApprovalRequired)
	for _, who := range []string{"ben", "cleo"} {
		o := x.word(who, catalog.DecisionApprove)
		o.Grant = func(g *intents.Grant) { g.Act.Client = intents.ClientOf("k1") }
		w.Want(w.Do(o), intents.OK)
	}
	w.Want(x.outcome(), intents.OK)
}

// What two rules hold needs both approvals.
func TestTwoRules(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true,"skills":["pay"]}`)
	if ids := x.held.Decision.PolicyIDs; len(ids) != 2 || len(x.held.Decision.Hold.Rules) != 2 {
		t.Fatalf("held by %v: %+v", ids, x.held.Decision.Hold)
	}
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
}

// A rejection ends the intent with the person's reason, and the plan replans on it; an equal intent
// of the next revision is not put before people again.
func TestReject(t *testing.T) {
	for decision, reason := range map[string]string{
		catalog.DecisionReject: "rejected by cleo: not today", catalog.DecisionRequestChanges: "changes requested by cleo: not today",
	} {
		w := routertest.New(t, routertest.Options{})
		x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
		w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
		got := x.state(x.says("cleo", decision))
		if got.State != catalog.ApprovalEnded || got.Code != intents.ApprovalRejected || got.Reason != reason {
			t.Errorf("%+v", got)
		}
		out := w.Want(x.outcome(), intents.ApprovalRejected)
		if out.Outcome.Retryable || out.Reason != reason {
			t.Errorf("%+v", out.Outcome)
		}
		v := x.task.View()
		if v.Status != catalog.PlanExecuting || v.Steps[0].Status != catalog.StepPending || v.ReplanCount != 0 {
			t.Errorf("%+v", v)
		}
		if got := w.Dir.Silent(0); len(got) != 1 {
			t.Errorf("silent %+v", got)
		}
		w.Want(x.says("ben", catalog.DecisionApprove), intents.MalformedArgs)
		p := x.task.Plan
		w.Want(p.Claim(), intents.OK)
		if again := w.Want(p.Started(1).Call("pay", `{"n":1}`), intents.ApprovalRejected); !again.Replayed {
			t.Errorf("asked for again: %+v", again)
		}
	}
}

// Past its deadline a hold ends by itself, at a start too; a new request is held again.
func TestHoldExpires(t *testing.T) {
	for name, expire := range map[string]func(w *routertest.World) *routertest.World{
		"while it runs": func(w *routertest.World) *routertest.World { w.Must(w.Router.ExpireHolds(w.Context())); return w },
		"at a start":    func(w *routertest.World) *routertest.World { return w.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			x := heldCall(w, catalog.Once, `{"once":true}`)
			w.Clock.Move(intents.MaxHold - 1)
			before := w.Journal.Next()
			x = x.on(expire(w))
			if x.Journal.Next() != before {
				t.Fatal("it ended before its deadline")
			}
			w.Clock.Move(1)
			x = x.on(expire(x.World))
			x.Want(x.outcome(), intents.ApprovalExpired)
			if v := x.task.View(); v.Status != catalog.PlanExecuting || v.Steps[0].Status != catalog.StepPending || v.ReplanCount != 0 {
				t.Errorf("%+v", v)
			}
			p := x.task.Plan
			x.Want(p.Claim(), intents.OK)
			more := p.Started(1).CallIntent("pay", `{"n":1}`)
			x.Want(x.Do(more), intents.ApprovalExpired)
			more.Ctx.Occurrence = 1
			x.Want(x.Do(more), intents.ApprovalRequired)
		})
	}
}

// Changes between hold and release determine the release.
func TestReleaseIsRejudged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *routertest.World, x releaseWorld)
		want   intents.Code // of the outcome; empty: still held
	}{
		"grants of the user revoked": {func(w *routertest.World, _ releaseWorld) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		}, intents.Cancelled}, // the plan ends, and its held intents with it
		"user disabled": {func(w *routertest.World, _ releaseWorld) {
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}}), intents.OK)
		}, intents.Cancelled}, // likewise
		"role lost": {func(w *routertest.World, _ releaseWorld) { user(w, "ana", "auditor") }, intents.RBACForbidden},
		"API key revoked": {func(w *routertest.World, _ releaseWorld) {
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
				ID: "k1", Hash: intents.Digest([]byte("k1")), UserID: "ana", MaxRoles: []string{"user", "approver"}, MayAssertUser: true, Revoked: true,
			}}), intents.OK)
		}, intents.RBACForbidden},
		"policy denies": {func(w *routertest.World, _ releaseWorld) { w.Data("skills_allow", `["other"]`) }, intents.PolicyDenied},
		"skill approved anew": {func(w *routertest.World, _ releaseWorld) {
			w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "pay", Digest: intents.Digest([]byte("pay 2")), Effect: catalog.Once}), intents.OK)
		}, intents.PolicyDenied},
		"policy wants more":         {func(w *routertest.World, _ releaseWorld) { w.Approval(`{"once":true,"count":3}`, "emil") }, ""},
		"an approver lost the role": {func(w *routertest.World, _ releaseWorld) { user(w, "ben", "user") }, ""},
		"an approver's grants revoked": {func(w *routertest.World, _ releaseWorld) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ben", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		}, ""},
		"the only approver left asks now": {func(w *routertest.World, _ releaseWorld) { w.Data("approval", `{"once":true,"count":1}`) }, intents.OK},
		"policy wants no approval":        {func(w *routertest.World, _ releaseWorld) { w.Data("approval", `{}`) }, intents.OK},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
			w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
			c.change(w, x)
			a := x.says("cleo", catalog.DecisionApprove)
			if c.want == intents.Cancelled {
				w.Want(a, intents.MalformedArgs)
			} else if got := x.state(a); c.want == "" && got.State != catalog.ApprovalPending || c.want != "" && got.State == catalog.ApprovalPending {
				t.Errorf("%+v", got)
			}
			want := c.want
			if want == "" {
				want = intents.ApprovalRequired
			}
			out := w.Want(x.outcome(), want)
			if out.Outcome != nil && out.Outcome.Status == intents.Failed && out.Outcome.Retryable {
				t.Error("retryable")
			}
			if n := len(w.Bus.Calls("skill.call")); (n == 1) != (want == intents.OK) {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// The signer's key revoked since: the intent ends.
func TestReleaseOfRevokedSigner(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	// The task's key cannot be revoked; the gateway's, which issued its grant, can.
	next := w.NewKey(intents.RoleGateway)
	w.Want(w.Keys(func(set *intents.KeySet) { set.Keys = append(set.Keys, next.VerificationKey().ToJWK()) }), intents.OK)
	w.RevokeKey(w.Gateway)
	o := x.word("ben", catalog.DecisionApprove)
	o.By, o.IssuedBy = next, &next
	if got := x.state(w.Do(o)); got.State != catalog.ApprovalEnded || got.Code != intents.GrantInvalid {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.GrantInvalid)
}

// Held intents end with their plan.
func TestHeldEndWithTheirPlan(t *testing.T) {
	for name, end := range map[string]func(x releaseWorld) *intents.Answer{
		"cancelled": func(x releaseWorld) *intents.Answer { return x.task.Cancel(x.Gateway) },
		"closed":    func(x releaseWorld) *intents.Answer { return x.task.Fail() },
		"revoked": func(x releaseWorld) *intents.Answer {
			return x.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T10:00:01Z"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			x := heldCall(w, catalog.Once, `{"once":true}`)
			w.Want(end(x), intents.OK)
			w.Want(x.outcome(), intents.Cancelled)
			if v := x.task.View(); v.Status != catalog.PlanFailed || v.ReplanCount != 0 {
				t.Errorf("%+v", v)
			}
			w.Want(x.says("ben", catalog.DecisionApprove), intents.MalformedArgs)
			w.Restart()
		})
	}
}

// An operator approves with a key of their own, in their own tenant.
func TestOperatorApproves(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	olga := w.AddOperator("default", "olga", "approver")
	x := heldCall(w, catalog.Once, `{"once":true}`)
	a := w.Do(routertest.Intent{By: olga, Type: "hitl.approve", User: "olga", Tenant: "default", Args: catalog.Approve{IntentID: x.held.IntentID, Decision: catalog.DecisionApprove}})
	if got := x.state(a); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
}
