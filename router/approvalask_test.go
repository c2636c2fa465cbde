package router_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

var question = catalog.ApprovalAsk{Title: "Which shall I close?", Items: []catalog.AskItem{{ID: "berlin", Text: "Berlin"}, {ID: "oslo", Text: "Oslo"}}}

// asks makes a task of a plan ask people.
func asks(t *testing.T, change func(a *catalog.ApprovalAsk)) releaseWorld {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	people(w)
	task := started(w, catalog.Pure)
	a := question
	if change != nil {
		change(&a)
	}
	return releaseWorld{w, task, w.Do(task.Intent("approval.ask", a))}
}

// yes approves some of the items for a person.
func (x releaseWorld) yes(who string, items ...string) *intents.Answer {
	x.Helper()
	o := x.word(who, catalog.DecisionApprove)
	o.Args = catalog.Approve{IntentID: x.held.IntentID, Decision: catalog.DecisionApprove, Items: items}
	return x.Do(o)
}

// TestApprovalAsk: a question needs approval whatever policy says, also over a restart, and its
// result lists who approved what.
func TestApprovalAsk(t *testing.T) {
	x := asks(t, nil)
	x.Want(x.held, intents.ApprovalRequired)
	if d := x.held.Decision; !cmp.Equal(d.PolicyIDs, []string{intents.RuleAsk}) || !cmp.Equal(d.Hold.Rules[0].Roles, []string{"approver"}) {
		t.Errorf("%+v", d)
	}
	if a := x.Want(x.yes("ben", "berlin", "rome"), intents.MalformedArgs); a.Pointer != "/intent/args/items/1" {
		t.Errorf("%s", a.Pointer)
	}
	x.Want(x.yes("dora", "berlin"), intents.RBACForbidden)
	x = x.on(x.Restart())
	if got := x.state(x.yes("ben", "oslo")); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	got := routertest.Result[catalog.ApprovalAskResult](x.World, x.outcome())
	if len(got.Approved) != 1 || got.Approved[0].UserID != "ben" || !cmp.Equal(got.Approved[0].Items, []string{"oslo"}) {
		t.Errorf("%+v", got)
	}
	if again := x.Want(x.Do(x.task.Intent("approval.ask", question)), intents.OK); again.IntentID != x.held.IntentID {
		t.Errorf("%+v", again)
	}
	x.Restart()
}

// Without items named a yes is for all. The requester through an agent may answer, unless policy
// asks for four eyes.
func TestApprovalAskOfAll(t *testing.T) {
	x := asks(t, nil)
	user(x.World, "ana", "user", "approver")
	x.state(x.yes("ana"))
	got := routertest.Result[catalog.ApprovalAskResult](x.World, x.outcome())
	if !cmp.Equal(got.Approved[0].Items, []string{"berlin", "oslo"}) {
		t.Errorf("%+v", got)
	}
}

// TestApprovalAskNamed: the people that a question names only narrow those that policy names.
func TestApprovalAskNamed(t *testing.T) {
	x := asks(t, func(a *catalog.ApprovalAsk) { a.Approvers = []string{"cleo"} })
	x.Want(x.yes("ben"), intents.RBACForbidden)
	x.state(x.yes("cleo"))
	x.Want(x.outcome(), intents.OK)

	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "approval.ask"`)
	a := question
	a.Approvers = []string{"cleo"}
	task := started(w, catalog.Pure)
	x = releaseWorld{w, task, w.Want(w.Do(task.Intent("approval.ask", a)), intents.ApprovalRequired)}
	if got := x.state(x.yes("cleo")); got.State != catalog.ApprovalPending || !cmp.Equal(got.Missing, []string{"ext.ours"}) {
		t.Errorf("%+v", got)
	}
	x.state(x.yes("ben", "berlin"))
	got := routertest.Result[catalog.ApprovalAskResult](w, x.outcome())
	if len(got.Approved) != 2 || len(got.Approved[0].Items) != 2 || len(got.Approved[1].Items) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestApprovalAskRefused: questions that nobody could answer, and malformed ones.
func TestApprovalAskRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a *catalog.ApprovalAsk)
		want   intents.Code
		at     string
	}{
		"two items of one id": {func(a *catalog.ApprovalAsk) { a.Items[1].ID = "berlin" }, intents.MalformedArgs, "/intent/args/items/1/id"},
		"nobody who may":      {func(a *catalog.ApprovalAsk) { a.Approvers = []string{"dora"} }, intents.PolicyDenied, ""},
		"without a title":     {func(a *catalog.ApprovalAsk) { a.Title = "" }, intents.SchemaInvalid, "/intent/args/title"},
	} {
		t.Run(name, func(t *testing.T) {
			x := asks(t, func(a *catalog.ApprovalAsk) {
				a.Items = append([]catalog.AskItem(nil), a.Items...)
				c.change(a)
			})
			if a := x.Want(x.held, c.want); a.Pointer != c.at {
				t.Errorf("%s: %s", a.Pointer, a.Reason)
			}
		})
	}
}

// TestNobodyCanMeet: an intent that needs approvers whom the tenant does not have is denied by the
// rule that requires them. Under four eyes the requester is not counted, and all people behind one
// API key count as one.
func TestNobodyCanMeet(t *testing.T) {
	for name, c := range map[string]struct {
		hold string
		want intents.Code
	}{
		"somebody":             {`"approvers": ["ben"]`, intents.ApprovalRequired},
		"nobody of the name":   {`"approvers": ["ann"]`, intents.PolicyDenied},
		"one without the role": {`"approvers": ["dora"]`, intents.PolicyDenied},
		"a role of nobody":     {`"roles": ["auditor"]`, intents.PolicyDenied},
		"too few":              {`"roles": ["approver"], "count": 3`, intents.PolicyDenied},
		"as many as there are": {`"roles": ["approver"], "count": 2`, intents.ApprovalRequired},
		"two of the same":      {`"approvers": ["ben", "ben"], "count": 2`, intents.PolicyDenied},
		"four eyes of one":     {`"approvers": ["ana"], "four_eyes": true`, intents.PolicyDenied},
		"two eyes of one":      {`"approvers": ["ana"]`, intents.ApprovalRequired},
	} {
		t.Run(name, func(t *testing.T) {
			w := rulesOf(t, `{"id": "ext.ours", "reason": "We want to know.", `+c.hold+`} if input.intent.type == "skill.call"`)
			for _, who := range []string{"ben", "cleo"} {
				user(w, who, "approver")
			}
			user(w, "dora", "user")
			if strings.Contains(name, "eyes") {
				user(w, "ana", "user", "approver")
			}
			a := w.Want(started(w, catalog.Once).Call("feed", `{}`), c.want)
			if d := a.Decision; !cmp.Equal(d.PolicyIDs, []string{"ext.ours"}) {
				t.Errorf("%+v", d)
			}
			w.Restart()
		})
	}
}

// TestAnybodyByKey: an API key that may name people counts as many people as required, under four
// eyes as one.
func TestAnybodyByKey(t *testing.T) {
	for rule, want := range map[string]intents.Code{
		`"roles": ["approver"], "count": 3`:                    intents.ApprovalRequired,
		`"approvers": ["zoe"]`:                                 intents.ApprovalRequired,
		`"roles": ["approver"], "count": 2, "four_eyes": true`: intents.PolicyDenied,
		`"roles": ["auditor"]`:                                 intents.PolicyDenied,
	} {
		w := rulesOf(t, `{"id": "ext.ours", "reason": "We want to know.", `+rule+`} if input.intent.type == "skill.call"`)
		apiKey(w, "k1")
		w.Want(started(w, catalog.Once).Call("feed", `{}`), want)
	}
}

// TestAgentsThatNobodyApproves: a registry whose agents need approvers that do not exist is not put
// in force.
func TestAgentsThatNobodyApproves(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	a := w.RegistryOf("default", 1, map[string]string{"careful": careful})
	if got := w.Want(w.Admin("registry.push", a), intents.MalformedArgs); !strings.Contains(got.Reason, "agent careful") || !strings.Contains(got.Hint, "writ user put") {
		t.Errorf("%s; %s", got.Reason, got.Hint)
	}
	user(w, "ben", "approver")
	w.Want(w.Admin("registry.push", a), intents.OK)
}
