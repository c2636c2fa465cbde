package policies

import (
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
	asked := []string(nil)
	q.Requesters = func() intents.Requesters { return intents.Requesters{Users: asked} }
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
	q.Inputs.Approvals, asked = []intents.Approval{ben, cleo}, []string{"cleo"}
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
