package policies

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
)

// TestJudge: the router's own rules hold on all their terms, deny what cannot wait, and end with
// the approvals that satisfy them; what nobody can satisfy is denied.
func TestJudge(t *testing.T) {
	e := engine(t, source("package writ.authz\n\ndecision := {\"allow\": true, \"deny\": [], \"hold\": []}\n"))
	rule := intents.HoldRule{ID: "agent.x.approval", Reason: "people look", Roles: []string{"approver"}, Count: 2, FourEyes: true, Mask: []string{"/input/card"}}
	q := intents.Question{Envelope: signed(t, `{"skill":"x"}`, &intents.Context{SessionID: "s", TurnID: "t"}), Rules: []intents.HoldRule{rule}}
	asked := []intents.Approver(nil)
	q.Requesters = func() intents.Requesters { return intents.Requesters{People: asked} }
	judge := func() Result {
		t.Helper()
		r, broken, err := e.Judge(t.Context(), q)
		if err != nil || broken {
			t.Fatal(err, broken)
		}
		return r
	}
	r := judge()
	if d := cmp.Diff([]intents.HoldRule{rule}, []intents.HoldRule{r.Hold[0].holdRule()}); r.Verdict() != intents.Hold || d != "" {
		t.Errorf("%+v\n%s", r, d)
	}
	q.CanMeet = func(intents.HoldRule) bool { return false }
	if r := judge(); r.Verdict() != intents.Deny {
		t.Errorf("nobody can meet it: %+v", r)
	}
	q.CanMeet, q.Release = nil, true
	ben, cleo := intents.Approval{UserID: "ben", Roles: []string{"approver"}}, intents.Approval{UserID: "cleo", Roles: []string{"approver"}}
	q.Inputs.Approvals = []intents.Approval{ben}
	if r := judge(); r.Verdict() != intents.Hold {
		t.Errorf("one of two: %+v", r)
	}
	q.Inputs.Approvals, asked = []intents.Approval{ben, cleo}, []intents.Approver{{User: "cleo"}}
	if r := judge(); r.Verdict() != intents.Hold {
		t.Errorf("one of them has asked: %+v", r)
	}
	asked = nil
	if r := judge(); r.Verdict() != intents.Allow {
		t.Errorf("both: %+v", r)
	}
	q.Release, q.Approval = false, true
	if r := judge(); r.Verdict() != intents.Deny {
		t.Errorf("an approval waits: %+v", r)
	}
}

// TestJudgeStanding: a standing approval satisfies rules that held its call, too, and none that only
// approvals bring about.
func TestJudgeStanding(t *testing.T) {
	const plain = "package writ.authz\n\ndecision := {\"allow\": true, \"deny\": [], \"hold\": []}\n"
	look := intents.HoldRule{ID: "look", Reason: "People look.", Roles: []string{"approver"}}
	more := intents.HoldRule{ID: "more", Reason: "People look again.", Roles: []string{"approver"}}
	later := "package writ.authz\n\ndecision := {\"allow\": true, \"deny\": [], \"hold\": hold}\n\n# METADATA\n# title: Look\n# description: People look.\n# custom:\n#   id: later\nhold contains {\"id\": \"later\", \"reason\": \"No.\", \"roles\": [\"approver\"], \"mask\": [\"/input\"]} if count(input.approvals) > 0\n"
	for name, c := range map[string]struct {
		policy string
		rules  []intents.HoldRule
		seen   []string
		want   intents.Verdict
	}{
		"the rule":         {plain, []intents.HoldRule{look}, []string{"look"}, intents.Allow},
		"two rules":        {plain, []intents.HoldRule{look, more}, []string{"look", "more"}, intents.Allow},
		"one more":         {plain, []intents.HoldRule{look, more}, []string{"look"}, intents.Hold},
		"after an answer":  {later, []intents.HoldRule{look}, []string{"look", "later"}, intents.Hold},
		"not known to one": {plain, []intents.HoldRule{look, more}, nil, intents.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			q := intents.Question{Envelope: signed(t, `{"skill":"x"}`, &intents.Context{SessionID: "s", TurnID: "t"}), Rules: c.rules}
			q.Seen, q.Requesters = c.seen, func() intents.Requesters { return intents.Requesters{} }
			q.Inputs.Standing, q.Inputs.Approvals = "sha256:first", []intents.Approval{{UserID: "ben", Roles: []string{"approver"}}}
			if r, broken, err := engine(t, source(c.policy)).Judge(t.Context(), q); err != nil || broken || r.Verdict() != c.want {
				t.Errorf("%+v, %t, %v", r, broken, err)
			}
		})
	}
}

// TestJudgeOptional: an optional rule holds what somebody can approve, and nothing else.
func TestJudgeOptional(t *testing.T) {
	e := engine(t, source("package writ.authz\n\n# METADATA\n# title: Look\n# description: People look.\n# custom:\n#   id: look\nhold contains {\"id\": \"look\", \"reason\": \"People look.\", \"roles\": [\"approver\"], \"optional\": true} if true\n\ndecision := {\"allow\": true, \"deny\": [], \"hold\": hold}\n"))
	for can, want := range map[bool]intents.Verdict{true: intents.Hold, false: intents.Allow} {
		q := intents.Question{Envelope: signed(t, `{"skill":"x"}`, &intents.Context{SessionID: "s", TurnID: "t"}), CanMeet: func(intents.HoldRule) bool { return can }}
		if r, broken, err := e.Judge(t.Context(), q); err != nil || broken || r.Verdict() != want {
			t.Errorf("somebody can approve: %t: %+v, %t, %v", can, r, broken, err)
		}
	}
}

// TestFourEyes: policies name everybody who may approve; the intent's user is never among them, and the
// decision is remembered for all users.
func TestFourEyes(t *testing.T) {
	data := Data{
		Tenants:   map[string]map[string]json.RawMessage{"acme": {"approval": json.RawMessage(`{"once":true,"count":2}`)}},
		Approvers: map[string][]string{"acme": {"ana", "ben", "cleo"}},
	}
	e := withData(t, engine(t, Embedded()), data)
	f := decisionInputs()
	f.Approvals = nil
	q := intents.Question{Envelope: signed(t, `{"skill":"outlet_list"}`, &intents.Context{PlanID: "plan_1"}), Inputs: f}
	for range 2 {
		r, _, err := e.Judge(t.Context(), q)
		if err != nil || r.Verdict() != intents.Hold || !slices.Equal(r.Approvers(), []string{"ben", "cleo"}) {
			t.Errorf("%v %+v", err, r)
		}
	}
	in := Input(q.Envelope, f)
	in["actor"] = map[string]any{"user_id": "ben", "tenant": "acme"}
	if r := decide(t, e, in).withoutUser("ben"); !slices.Equal(r.Approvers(), []string{"ana", "cleo"}) {
		t.Errorf("%+v", r)
	}
	if hits, misses := e.MemoStats(); hits != 2 || misses != 1 {
		t.Errorf("%d hits, %d misses", hits, misses)
	}
}
