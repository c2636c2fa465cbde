package router_test

import (
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

const (
	askAlways = `{"id": "ext.ours", "reason": "We want to know.", "roles": ["approver"]} if input.intent.type == "skill.call"`
	askMuch   = askAlways + `

# METADATA
# title: Much
# description: It is much.
# custom:
#   id: ext.much
hold contains {"id": "ext.much", "reason": "It is much.", "roles": ["approver"]} if input.intent.args.input.n > 100
`
)

// stands has ben approve a call with an input for later calls, too.
func stands(w *routertest.World, task *routertest.Task, input string, also catalog.Also) releaseWorld {
	w.Helper()
	x := releaseWorld{w, task, w.Want(task.Call("feed", input), intents.ApprovalRequired)}
	w.Want(w.Do(x.also(also)), intents.OK)
	return x
}

// also is ben's yes for later calls, too.
func (x releaseWorld) also(also catalog.Also) routertest.Intent {
	o := x.word("ben", catalog.DecisionApprove)
	o.Args = catalog.Approve{IntentID: x.held.IntentID, Decision: catalog.DecisionApprove, Also: &also}
	return o
}

var hour = catalog.Also{Uses: 5, WithinSec: 3600}

// A yes stands for calls that wait for what the person has seen, and for no other rule.
func TestStandingOfRulesSeen(t *testing.T) {
	w := rules(t, askMuch)
	task := started(w, catalog.Pure)
	stands(w, task, `{"n":5}`, catalog.Also{Uses: 5, WithinSec: 3600, Free: []string{"n"}})
	w.Want(task.Call("feed", `{"n":6}`), intents.OK)
	w.Want(task.Call("feed", `{"n":600}`), intents.ApprovalRequired)
	stands(w, task, `{"n":700}`, catalog.Also{Uses: 5, WithinSec: 3600, Free: []string{"n"}})
	w.Want(task.Call("feed", `{"n":800}`), intents.OK) // whichever of the two is looked at first
	w.Want(task.Call("feed", `{"n":7}`), intents.OK)
	w.Restart()
}

// A call without input and one with an empty input are the same.
func TestStandingOfNoInput(t *testing.T) {
	w := rules(t, askAlways)
	task := started(w, catalog.Pure)
	stands(w, task, "", hour)
	w.Want(task.Call("feed", `{}`), intents.OK)
	w.Want(task.Call("feed", `{"n":1}`), intents.ApprovalRequired)
}

// A yes is for the pin that people were asked about.
func TestStandingOfAnotherPin(t *testing.T) {
	w := rules(t, askAlways)
	task := started(w, catalog.Pure)
	x := releaseWorld{w, task, w.Want(task.Call("feed", `{"n":1}`), intents.ApprovalRequired)}
	w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "feed", Digest: intents.Digest([]byte("feed 2")), Effect: catalog.Pure}), intents.OK)
	w.Want(w.Do(x.also(hour)), intents.MalformedArgs)
	w.Want(task.Call("feed", `{"n":1}`), intents.ApprovalRequired)
}

// Two calls of a batch do not both use the last of a standing approval.
func TestStandingInABatch(t *testing.T) {
	w := rules(t, askAlways)
	task := started(w, catalog.Pure)
	stands(w, task, `{"n":9}`, catalog.Also{Uses: 1, WithinSec: 3600, Free: []string{"n"}})
	b := submitted(w, batchOf(calls(w, task, 2)...), intents.MalformedArgs)
	if b.Index == nil || *b.Index != 1 {
		t.Errorf("%+v", b)
	}
	submitted(w, batchOf(calls(w, task, 1)...), intents.OK)
	w.Want(task.Call("feed", `{"n":3}`), intents.ApprovalRequired)
}

// What changes between the decision about a call and its commit counts.
func TestStandingMeets(t *testing.T) {
	for name, c := range map[string]struct {
		meets func(x releaseWorld)
		want  intents.Code
	}{
		"a withdrawal": {func(x releaseWorld) { x.Want(x.says("ben", catalog.DecisionWithdraw), intents.OK) }, intents.ApprovalRequired},
		"the last use": {func(x releaseWorld) { x.Want(x.task.Call("feed", `{"n":1}`), intents.OK) }, intents.ApprovalRequired},
		"the role":     {func(x releaseWorld) { user(x.World, "ben", "user") }, intents.ApprovalRequired},
		"the grant":    {func(x releaseWorld) { ended(x, "ben") }, intents.ApprovalRequired},
		"another pin": {func(x releaseWorld) {
			x.Want(x.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "feed", Digest: intents.Digest([]byte("feed 2")), Effect: catalog.Pure}), intents.OK)
		}, intents.ApprovalRequired},
		"what may destroy": {func(x releaseWorld) {
			x.Want(x.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "feed", Digest: intents.Digest([]byte("feed")), Effect: catalog.Pure, Destructive: "yes"}), intents.OK)
		}, intents.ApprovalRequired},
		"nothing of its own": {func(x releaseWorld) { user(x.World, "gil", "user") }, intents.OK},
	} {
		t.Run(name, func(t *testing.T) {
			w, b := interposed(t)
			holds(w, askAlways)
			people(w)
			task := started(w, catalog.Pure)
			x := stands(w, task, `{"n":9}`, catalog.Also{Uses: 1, WithinSec: 3600, Free: []string{"n"}})
			call := w.Sign(task.CallIntent("feed", `{"n":0}`))
			b.commit = func() { c.meets(x) }
			w.Want(w.Send(call), c.want)
			w.Restart()
		})
	}
}

// At most so many stand in a tenant, whoever gives them at once.
func TestStandingMost(t *testing.T) {
	w, b := interposed(t)
	holds(w, askAlways)
	people(w)
	task := started(w, catalog.Pure)
	call := func(n int) releaseWorld {
		return releaseWorld{w, task, w.Want(task.Call("feed", fmt.Sprintf(`{"n":%d}`, n)), intents.ApprovalRequired)}
	}
	for n := range state.MaxStanding - 1 {
		w.Want(w.Do(call(n).also(hour)), intents.OK)
	}
	one, other := call(1000), call(1001)
	last := w.Sign(one.also(hour))
	b.commit = func() { w.Want(w.Do(other.also(hour)), intents.OK) }
	w.Want(w.Send(last), intents.MalformedArgs)
}

// A standing approval remains after its end for calls that were decided before it, so that an auditor
// finds it.
func TestStandingEnds(t *testing.T) {
	w, b := interposed(t)
	holds(w, askAlways)
	people(w)
	task := started(w, catalog.Pure)
	x := stands(w, task, `{"n":9}`, catalog.Also{Uses: 5, WithinSec: 60, Free: []string{"n"}})
	at, elsewhere := w.Clock.Now(), w.Begun("p2", "feed").Started(1)
	w.Clock.Move(59 * time.Second)
	call := w.Sign(task.CallIntent("feed", `{"n":0}`))
	b.commit = func() {
		w.Clock.Move(2 * time.Second)
		stands(w, elsewhere, `{"other":1}`, hour)
		so := state.Intent{Type: state.TypeSkillCall, Tenant: "default", User: "ana", Skill: "feed", Args: []byte(`{"input":{"n":0},"skill":"feed"}`), Context: intents.Context{SessionID: routertest.Session}, Now: at.Add(59 * time.Second)}
		if _, name, _ := w.Dir.View().Standing(&so, "", nil); name != x.held.IntentID {
			t.Errorf("found %q", name)
		}
	}
	if a := w.Send(call); a.Code != intents.ApprovalRequired { // decided again, after the end
		w.Want(a, intents.OK)
	}
	w.Want(task.Call("feed", `{"n":1}`), intents.ApprovalRequired)
}
