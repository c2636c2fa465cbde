package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// image is the snapshot of a state.
func (l *testLog) image() string {
	l.Helper()
	var out bytes.Buffer
	if _, err := l.Snapshot(&out); err != nil {
		l.Fatal(err)
	}
	again, err := state.Open(bytes.NewReader(out.Bytes()))
	if err != nil {
		l.Fatal(err)
	}
	_, one, err1 := l.Digest()
	_, other, err2 := again.Digest()
	if one != other || err1 != nil || err2 != nil {
		l.Errorf("the state of its snapshot is another: %v %v", err1, err2)
	}
	return out.String()
}

// TestClosedPlansKeepNoArguments: for the intents of a closed plan that act once, the state
// knows what they equal, and retains none of their arguments.
func TestClosedPlansKeepNoArguments(t *testing.T) {
	l := tell(t)
	l.transition("plan.open", catalog.PlanOpen{PlanID: "p1", Task: "Which ten?"})
	secret := json.RawMessage(`{"input":"` + strings.Repeat("what was said ", 100) + `"}`)
	said := func(plan string) {
		o := intent("skill.call", plan)
		o.Args, o.Signer = secret, intents.RoleWorkflow
		l.ends(l.take(state.Content{Intent: o}), intents.Done)
	}
	said("p1")
	if !strings.Contains(l.image(), "what was said") {
		t.Fatal("an open plan does not tell it")
	}
	l.transition("cancel", catalog.Cancel{PlanID: "p1"})
	said("p1") // accepted earlier
	if strings.Contains(l.image(), "what was said") {
		t.Error("it is still there when the plan is closed")
	}
	equal := func(args json.RawMessage) intents.Code {
		return intents.CodeOf(l.View().CheckRepeat("default", intents.RoleWorkflow, "skill.call", args, intents.Context{PlanID: "p1", Step: 1, Revision: 1}, true))
	}
	if was, other := equal(secret), equal(json.RawMessage(`{}`)); was == other {
		t.Errorf("an equal intent gives %q, another one %q", was, other)
	}
}

// TestNothingIsKeptForEver: what an operator revokes leaves the state once nothing can depend on
// it, also in a state opened from a snapshot; that there were API keys is retained for good.
func TestNothingIsKeptForEver(t *testing.T) {
	l := tell(t)
	operator := func(typ string, args any) {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		o := intent(typ, "")
		o.Tenant, o.Args, o.Decision.Executor = "system", raw, catalog.ExecutorRouter
		l.take(state.Content{Intent: o})
	}
	operator("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "default"}})
	empty := 0
	for day := range 40 {
		sub, key := fmt.Sprintf("user-%d", day), catalog.APIKey{ID: fmt.Sprintf("key-%d", day), Hash: intents.Digest(fmt.Append(nil, day)), UserID: "ana", MaxRoles: []string{"user"}}
		operator("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &key})
		key.Revoked = true
		operator("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &key})
		operator("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: sub, Before: intents.FormatTime(l.at)})
		l.advance(state.PlanKept - time.Hour)
		if got := l.image(); !strings.Contains(got, sub) || !strings.Contains(got, key.Hash) || l.View().RevokedBefore("default", sub).IsZero() {
			t.Fatalf("day %d: left too early", day)
		}
		l.advance(2 * time.Hour)
		got := l.image()
		if strings.Contains(got, sub) || strings.Contains(got, key.Hash) || !l.HasAPIKeys() {
			t.Fatalf("day %d: it has not left, or nobody knows that there were API keys", day)
		}
		if day == 1 {
			empty = len(got)
		} else if day > 1 && len(got) > empty+64*day { // the records of administration
			t.Fatalf("day %d: the snapshot has %d bytes, and had %d", day, len(got), empty)
		}
	}
}

// TestResolvedAreBounded: of the intents that operators have resolved, the latest are retained.
func TestResolvedAreBounded(t *testing.T) {
	l := tell(t)
	const most = 1 << 14
	var first, last int64
	for n := range most + 10 {
		at := l.call("")
		l.ends(at, intents.StatusIndetermined)
		l.transition("intent.resolve", catalog.IntentResolve{IntentID: fmt.Sprint("intent ", at), Status: "done", Reason: "seen"})
		if last = at; n == 0 {
			first = at
		}
	}
	for at, want := range map[int64]intents.Status{first: intents.StatusIndetermined, last: intents.Done} {
		out := intents.Outcome{Status: intents.StatusIndetermined}
		if l.Resolve(at, &out); out.Status != want {
			t.Errorf("the intent at %d is %s, want %s", at, out.Status, want)
		}
	}
	if n := strings.Count(l.image(), `"done"`); n > most {
		t.Errorf("%d are remembered", n)
	}
}
