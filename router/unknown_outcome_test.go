package router_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// cutOff is a report of a call whose effect is unknown.
var cutOff = routertest.Always(intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "cut off"})

// unsure is a task whose first call of a once skill has an unknown outcome, and its second call,
// which waits for that. approval names the approvals that it needs besides.
func unsure(t *testing.T, approval string) (x releaseWorld, first *intents.Answer, again *intents.Answer) {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	people(w)
	for _, skill := range []string{"pay", "ship"} {
		w.Pin(skill, catalog.Once)
	}
	w.Data("approval", `{"once":false}`)
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	steps := routertest.Steps(1, "pay", "pay")
	steps[0].Skills, steps[1].InputFromStep, steps[1].Parallel = []string{"pay", "ship"}, 0, true
	w.Want(p.Plan(steps), intents.OK)
	task := p.Started(1)
	usual := w.Bus.Executor("skill.call")
	w.Bus.On("skill.call", cutOff)
	first = w.Want(task.Call("pay", `{"n":1}`), intents.Indeterminate)
	w.Bus.On("skill.call", usual)
	w.Data("approval", approval)
	x = releaseWorld{w, task, w.Want(task.Call("pay", `{"n":2}`), intents.ApprovalRequired)}
	return x, first, w.Do(task.CallIntent("pay", `{"n":1}`))
}

func (x releaseWorld) resolve(a *intents.Answer, status string) {
	x.Helper()
	x.Want(x.Admin("intent.resolve", catalog.IntentResolve{IntentID: a.IntentID, Status: status, Reason: "seen at the other end"}), intents.OK)
}

// While the effect of a call is unknown, the other calls of its skill in the step wait, without
// asking people: intent.resolve lets them continue. The same call stays refused, and other skills
// and steps are not affected.
func TestUnknownOutcome(t *testing.T) {
	for _, status := range []string{"done", "failed"} {
		t.Run(status, func(t *testing.T) {
			x, first, again := unsure(t, `{"once":false}`)
			d := x.held.Decision
			if !cmp.Equal(d.PolicyIDs, []string{intents.RuleUnknownOutcome}) || len(d.Approvers) > 0 || d.Hint != "once somebody has looked whether it happened: writ intent resolve "+first.IntentID+" done|failed --reason TEXT" {
				t.Errorf("%+v", d)
			}
			x.Want(again, intents.Indeterminate) // the first one's answer
			x.Want(x.task.Call("ship", `{}`), intents.OK)
			x.Want(x.task.Started(2).Call("pay", `{"n":3}`), intents.OK)
			x.Want(x.says("ben", catalog.DecisionApprove), intents.RBACForbidden)
			x.Want(x.says("ben", catalog.DecisionReject), intents.RBACForbidden)
			for query, want := range map[bus.ApprovalsRequest]int{{}: 0, {Mine: true}: 0, {IntentID: x.held.IntentID}: 1} {
				page, err := x.Router.Inbox(t.Context(), intents.Grant{Subject: "ana", Tenant: "default", Roles: []string{"user"}}, query)
				if x.Must(err); len(page.Approvals) != want || want == 1 && (page.Approvals[0].MayDecide || page.Approvals[0].Rules[0].Satisfied) {
					t.Errorf("%+v: %+v", query, page)
				}
			}
			x.Want(x.task.Finish("held", "", ""), intents.OK)
			x.Must(x.Router.ReleaseReady(t.Context()))
			if calls := len(x.Bus.Calls("skill.call")); calls != 3 {
				t.Errorf("%d calls before it is known", calls)
			}
			x.resolve(first, status)
			x = x.on(x.Restart()) // between the two
			x.Must(x.Router.ReleaseReady(t.Context()))
			x.Want(x.outcome(), intents.OK)
			x.Must(x.Router.ReleaseReady(t.Context()))
			if calls := len(x.Bus.Calls("skill.call")); calls != 4 {
				t.Errorf("%d calls", calls)
			}
			if _, steps := x.task.Status(); steps[0] != catalog.StepPending {
				t.Errorf("steps %v", steps)
			}
		})
	}
}

// A call that also needs approval continues once both are there, in either order.
func TestUnknownOutcomeAndHeld(t *testing.T) {
	for name, approvedFirst := range map[string]bool{"approved first": true, "known first": false} {
		t.Run(name, func(t *testing.T) {
			x, first, _ := unsure(t, `{"once":true}`)
			if d := x.held.Decision; len(d.PolicyIDs) != 2 || d.PolicyIDs[1] != intents.RuleUnknownOutcome || len(d.Approvers) != 2 {
				t.Fatalf("%+v", d)
			}
			want := []string{intents.RuleUnknownOutcome}
			if !approvedFirst {
				x.resolve(first, "done")
				x.Must(x.Router.ReleaseReady(t.Context()))
				want = nil
			}
			if got := x.state(x.Want(x.says("ben", catalog.DecisionApprove), intents.OK)); !cmp.Equal(got.Missing, want) {
				t.Errorf("missing %v", got.Missing)
			}
			if approvedFirst {
				x.resolve(first, "done")
				x.Must(x.Router.ReleaseReady(t.Context()))
			}
			x.Want(x.outcome(), intents.OK)
			if calls := len(x.Bus.Calls("skill.call")); calls != 2 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// A call also waits for an earlier task's call that is still being executed. Calls of the task
// itself do not wait for each other.
func TestUnknownOutcomeOpen(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("pay", catalog.Once)
	w.Data("approval", `{"once":false}`)
	p := w.Begun("p1", "pay")
	usual := w.Bus.Executor("skill.call")
	reached, goOn := make(chan struct{}), make(chan struct{})
	w.Bus.On("skill.call", func(ctx context.Context, c routertest.Call) intents.Report {
		reached <- struct{}{}
		<-goOn
		return usual(ctx, c)
	})
	task, ended := p.Started(1), make(chan *intents.Answer)
	go func() { ended <- task.Call("pay", `{"n":1}`) }()
	<-reached
	w.Bus.On("skill.call", usual)
	w.Want(task.Call("pay", `{"n":2}`), intents.OK)
	w.Want(p.Claim(), intents.OK)
	x := releaseWorld{w, p.Started(1), nil}
	x.held = w.Want(x.task.Call("pay", `{"n":3}`), intents.ApprovalRequired)
	w.Must(w.Router.ReleaseReady(t.Context()))
	if calls := len(w.Bus.Calls("skill.call")); calls != 2 {
		t.Errorf("%d calls while one is open", calls)
	}
	close(goOn)
	w.Want(<-ended, intents.OK)
	w.Must(w.Router.ReleaseReady(t.Context()))
	w.Want(x.outcome(), intents.OK)
}
