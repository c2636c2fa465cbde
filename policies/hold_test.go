package policies

import (
	"testing"
	"time"

	"aob.dev/writ/intents"
)

// TestSatisfied: each person counts once, and only if the rule accepts them.
func TestSatisfied(t *testing.T) {
	yes := func(who ...string) []intents.Approval {
		var out []intents.Approval
		for _, w := range who {
			out = append(out, intents.Approval{UserID: w, Roles: []string{"approver"}})
		}
		return out
	}
	keyed := func(whoAndKey ...string) []intents.Approval {
		var out []intents.Approval
		for i := 0; i < len(whoAndKey); i += 2 {
			out = append(out, intents.Approval{UserID: whoAndKey[i], Key: whoAndKey[i+1], Roles: []string{"approver"}})
		}
		return out
	}
	two := intents.HoldRule{Approvers: []string{"ana", "ben", "cleo"}, Count: 2, FourEyes: true}
	for name, c := range map[string]struct {
		rule intents.HoldRule
		by   []intents.Approval
		want bool
	}{
		"nobody":                {two, nil, false},
		"one":                   {two, yes("ben"), false},
		"one twice":             {two, yes("ben", "ben"), false},
		"two":                   {two, yes("cleo", "ben"), true},
		"with the asker":        {two, yes("ana", "ben"), false},
		"with a stranger":       {two, yes("ben", "eve"), false},
		"one is the default":    {intents.HoldRule{Approvers: []string{"ben"}}, yes("ben"), true},
		"without four eyes":     {intents.HoldRule{Approvers: []string{"ana"}}, yes("ana"), true},
		"by role":               {intents.HoldRule{Roles: []string{"approver"}}, yes("eve"), true},
		"by another role":       {intents.HoldRule{Roles: []string{"admin"}}, yes("eve"), false},
		"by role, four eyes":    {intents.HoldRule{Roles: []string{"approver"}, FourEyes: true}, yes("ana"), false},
		"nobody is named":       {intents.HoldRule{}, yes("ben", "cleo"), false},
		"role or name, mixed":   {intents.HoldRule{Roles: []string{"approver"}, Approvers: []string{"zoe"}, Count: 2}, yes("ben", "zoe"), true},
		"the asker's key":       {two, keyed("ben", "", "cleo", "k1"), false},
		"one key for both":      {two, keyed("ben", "k2", "cleo", "k2"), false},
		"a key each":            {two, keyed("ben", "k2", "cleo", "k3"), true},
		"a key and none":        {two, keyed("ben", "k2", "cleo", ""), true},
		"asker's other key":     {two, keyed("ben", "", "cleo", "of ana"), false},
		"asker asserted":        {two, keyed("ben", "", "ana", "k3"), false},
		"owner and asserted":    {two, keyed("ben", "", "cleo", "of ben"), false},
		"asserted and owner":    {two, keyed("cleo", "of ben", "ben", ""), false},
		"two keys of an owner":  {two, keyed("ben", "of eve", "cleo", "too of eve"), false},
		"keys of two owners":    {two, keyed("ben", "of eve", "cleo", "of dan"), true},
		"keys of no owner":      {two, keyed("ben", "of nobody", "cleo", "too of nobody"), true},
		"an owner, two eyes":    {intents.HoldRule{Roles: []string{"approver"}, Count: 2}, keyed("ben", "", "cleo", "of ben"), true},
		"one key, two eyes":     {intents.HoldRule{Roles: []string{"approver"}, Count: 2}, keyed("ben", "k2", "cleo", "k2"), true},
		"asker's key, two eyes": {intents.HoldRule{Approvers: []string{"ben"}}, keyed("ben", "k1"), true},
	} {
		asked := intents.Requesters{
			People: []intents.Approver{{User: "ana", Key: "k1"}},
			Owners: map[string]string{"of ana": "ana", "of ben": "ben", "of eve": "eve", "too of eve": "eve", "of dan": "dan", "of nobody": "", "too of nobody": ""},
		}
		if got := c.rule.Satisfied(c.by, asked); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestHoldOfSeveralRules: all rules that hold must be satisfied; the nearest deadline is the
// intent's.
func TestHoldOfSeveralRules(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	held := Result{Hold: []Rule{
		{ID: "a", Reason: "a", Approvers: []string{"ben"}, WithinSec: 600}, {ID: "b", Reason: "b", Approvers: []string{"cleo"}},
	}}
	if h := held.HoldAt(at); h.Deadline != "2026-11-20T10:10:00.000Z" || len(h.Rules) != 2 {
		t.Errorf("%+v", h)
	}
	ben, both := []intents.Approval{{UserID: "ben"}}, []intents.Approval{{UserID: "ben"}, {UserID: "cleo"}}
	if r := held.WithApprovals(ben, intents.Requesters{}); r.Verdict() != intents.Hold || len(r.Hold) != 1 || r.Hold[0].ID != "b" || len(held.Hold) != 2 {
		t.Errorf("%+v", r)
	}
	if r := held.WithApprovals(both, intents.Requesters{}); r.Verdict() != intents.Allow {
		t.Errorf("%+v", r)
	}
	denied := Result{Deny: []Rule{{ID: "d", Reason: "d"}}}
	if r := denied.WithApprovals(both, intents.Requesters{}); r.Verdict() != intents.Deny || denied.HoldAt(at) != nil {
		t.Errorf("%+v", r)
	}
	if r := held.Unheld(); r.Verdict() != intents.Deny || len(r.PolicyIDs()) != 2 {
		t.Errorf("%+v", r)
	}
}

// TestHoldRefused: a hold without a deadline, or one that no rule would allow, is none.
func TestHoldRefused(t *testing.T) {
	known := map[string]RuleInfo{"a": {}}
	for name, rule := range map[string]Rule{
		"longer than a day": {ID: "a", Reason: "a", WithinSec: 86401}, "negative": {ID: "a", Reason: "a", WithinSec: -1}, "count": {ID: "a", Reason: "a", Count: -1},
	} {
		if _, err := (Result{Allow: true, Hold: []Rule{rule}}).resolve(known); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	r, err := (Result{Hold: []Rule{{ID: "a", Reason: "a"}}}).resolve(known)
	if err != nil || r.Verdict() != intents.Deny || r.Deny[0].ID != IDDefault {
		t.Errorf("%+v %v", r, err)
	}
}
