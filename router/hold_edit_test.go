package router_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

const edited = `{"input":{"n":5},"skill":"pay"}`

// edits is a person's edit of the held intent.
func (x releaseWorld) edits(who, args string) routertest.Intent {
	o := x.word(who, catalog.DecisionEdit)
	o.Args = catalog.Approve{IntentID: x.held.IntentID, Decision: catalog.DecisionEdit, Args: json.RawMessage(args)}
	return o
}

// next is what the step's next task submits because of the held intent.
func (x releaseWorld) next(change func(o *routertest.Intent)) (releaseWorld, routertest.Intent) {
	x.Helper()
	x.Want(x.task.Claim(), intents.OK)
	task := x.task.Started(1)
	o := task.CallIntent("pay", `{"n":5}`)
	o.Ctx.Cause = x.held.IntentID
	if change != nil {
		change(&o)
	}
	return releaseWorld{x.World, task, nil}, o
}

// TestEdit: an edit ends the hold and says what to submit instead; that intent is held as usual,
// and continues by itself if the editor may approve it. The skill sees the edited arguments alone.
func TestEdit(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben", "cleo"]} if input.intent.type == "skill.call"`)
	w.Pin("pay", catalog.Once)
	w.Data("approval", `null`)
	task := w.Begun("p1", "pay", "pay").Started(1)
	x := releaseWorld{w, task, w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)}
	w.Want(task.Finish("held", "", ""), intents.OK)
	got := x.state(w.Do(x.edits("ben", edited)))
	if got.State != catalog.ApprovalEnded || got.Code != intents.Changed {
		t.Errorf("%+v", got)
	}
	if out := w.Want(x.outcome(), intents.Changed); string(out.Outcome.Result) != `{"args":`+edited+`}` || out.Outcome.Retryable || out.Reason != "edited by ben" {
		t.Errorf("%+v %s", out, out.Outcome.Result)
	}
	w.Want(x.says("cleo", catalog.DecisionApprove), intents.MalformedArgs)

	var snapshot bytes.Buffer
	_, err := w.Dir.Snapshot(&snapshot)
	w.Must(err)
	again, err := state.Open(&snapshot)
	w.Must(err)
	_, was, err := w.Dir.Digest()
	w.Must(err)
	if _, is, err := again.Digest(); err != nil || is != was {
		t.Errorf("a snapshot holds %s, not %s: %v", is, was, err)
	}
	x = x.on(w.Restart()) // as between the edit and the next task
	next, o := x.next(nil)
	next.held = x.Want(x.Do(o), intents.ApprovalRequired)
	x.Must(x.Router.ReleaseReady(t.Context()))
	x.Want(next.outcome(), intents.OK)
	calls := x.Bus.Calls("skill.call")
	if len(calls) != 1 || calls[0].Ticket.IntentID != next.held.IntentID || !strings.Contains(string(calls[0].Body.Intent.Args), `"n":5`) {
		t.Fatalf("%+v", calls)
	}
	equal := next.task.CallIntent("pay", `{"n":5}`) // an edit leads to one intent only
	equal.Ctx.Cause, equal.Ctx.Occurrence = x.held.IntentID, 1
	next.held = x.Want(x.Do(equal), intents.ApprovalRequired)
	x.Must(x.Router.ReleaseReady(t.Context()))
	if a := x.Want(x.Do(equal), intents.ApprovalRequired); a.IntentID != next.held.IntentID || len(x.Bus.Calls("skill.call")) != 1 {
		t.Errorf("%+v", a)
	}
	x.Restart()
}

// TestEditOfAnother: an intent that only resembles the edited one needs approval like any other.
func TestEditOfAnother(t *testing.T) {
	for name, change := range map[string]func(x releaseWorld, o *routertest.Intent){
		"other arguments": func(_ releaseWorld, o *routertest.Intent) {
			o.Args = catalog.SkillCall{Skill: "pay", Input: []byte(`{"n":6}`)}
		},
		"no cause":            func(_ releaseWorld, o *routertest.Intent) { o.Ctx.Cause = "" },
		"another cause":       func(x releaseWorld, o *routertest.Intent) { o.Ctx.Cause = x.task.Digest },
		"after the deadline":  func(x releaseWorld, _ *routertest.Intent) { x.Clock.Move(intents.MaxHold) },
		"the editor has left": func(x releaseWorld, _ *routertest.Intent) { user(x.World, "ben", "user") },
		"another step": func(x releaseWorld, o *routertest.Intent) {
			task := x.task.Started(2)
			o.By, o.Ctx.Step, o.Ctx.TaskID = task.Key, 2, task.TaskID
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben", "cleo"]} if input.intent.type == "skill.call"`)
			w.Pin("pay", catalog.Once)
			w.Data("approval", `null`)
			p := w.NewPlan("p1")
			w.Want(p.Open(), intents.OK)
			w.Want(p.Claim(), intents.OK)
			steps := routertest.Steps(1, "pay", "pay")
			steps[1].InputFromStep, steps[1].Parallel = 0, true
			w.Want(p.Plan(steps), intents.OK)
			task := p.Started(1)
			x := releaseWorld{w, task, w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)}
			w.Want(task.Finish("held", "", ""), intents.OK)
			w.Want(w.Do(x.edits("ben", edited)), intents.OK)
			next, o := x.next(func(o *routertest.Intent) { change(x, o) })
			if name == "after the deadline" { // with a task of then
				w.Want(next.task.Claim(), intents.OK)
				o = next.task.Started(1).CallIntent("pay", `{"n":5}`)
				o.Ctx.Cause = x.held.IntentID
			}
			next.held = w.Want(w.Do(o), intents.ApprovalRequired)
			w.Must(w.Router.ReleaseReady(t.Context()))
			if a, ok := w.Router.Intent(t.Context(), *next.held.Position); ok != nil || a.Code != intents.ApprovalRequired {
				t.Fatalf("%+v", a)
			}
			if got := next.state(next.says("cleo", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
				t.Errorf("%+v", got)
			}
			w.Want(next.outcome(), intents.OK)
		})
	}
}

// TestEditorIsNoFourthEye: under four eyes the editor of an intent cannot approve it, nor can
// anybody through the editor's API key, nor the editor of the intent that it was made from.
func TestEditorIsNoFourthEye(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	o := x.edits("ben", edited)
	o.Grant = func(g *intents.Grant) { g.Act.Client = "apikey:k2" }
	w.Want(w.Do(o), intents.OK)
	next, o := x.next(nil)
	next.held = w.Want(w.Do(o), intents.ApprovalRequired)
	w.Must(w.Router.ReleaseReady(t.Context()))
	w.Want(next.says("ben", catalog.DecisionApprove), intents.RBACForbidden)
	cleo := next.word("cleo", catalog.DecisionApprove)
	cleo.Grant = func(g *intents.Grant) { g.Act.Client = "apikey:k2" }
	w.Want(w.Do(cleo), intents.RBACForbidden)
	user(w, "dave", "approver")
	w.Want(w.Do(next.edits("cleo", `{"skill":"pay","input":{"n":7}}`)), intents.MalformedArgs) // dave was not asked
	w.Want(next.says("cleo", catalog.DecisionApprove), intents.OK)
	w.Want(next.outcome(), intents.OK)

	w.Want(next.task.Finish("done", next.task.MemoryKey("result"), ""), intents.MalformedArgs)
	three := w.Begun("p2", "pay", "pay").Started(1)
	x = releaseWorld{w, three, w.Want(three.Call("pay", `{"n":1}`), intents.ApprovalRequired)}
	w.Want(three.Finish("held", "", ""), intents.OK)
	w.Want(w.Do(x.edits("ben", edited)), intents.OK)
	next, o = x.next(nil)
	next.held = w.Want(w.Do(o), intents.ApprovalRequired)
	w.Want(next.task.Finish("held", "", ""), intents.OK)
	w.Want(w.Do(next.edits("cleo", `{"skill":"pay","input":{"n":7}}`)), intents.OK)
	last, o := next.next(func(o *routertest.Intent) { o.Args = catalog.SkillCall{Skill: "pay", Input: []byte(`{"n":7}`)} })
	last.held = w.Want(w.Do(o), intents.ApprovalRequired)
	for _, who := range []string{"ben", "cleo"} {
		w.Want(last.says(who, catalog.DecisionApprove), intents.RBACForbidden)
	}
	w.Want(last.says("dave", catalog.DecisionApprove), intents.OK)
	w.Want(last.outcome(), intents.OK)
	w.Restart()
}

// TestEditRefused: every invalid edit, with its reason; the intent stays held.
func TestEditRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *routertest.World, x releaseWorld, o *routertest.Intent)
		want   intents.Code
		at     string
	}{
		"without arguments": {func(_ *routertest.World, x releaseWorld, o *routertest.Intent) {
			o.Args = catalog.Approve{IntentID: x.held.IntentID, Decision: "edit"}
		}, intents.SchemaInvalid, "/intent/args"},
		"a yes with args": {func(_ *routertest.World, x releaseWorld, o *routertest.Intent) {
			o.Args = catalog.Approve{IntentID: x.held.IntentID, Decision: "approve", Args: []byte(edited)}
		}, intents.SchemaInvalid, "/intent/args"},
		"of another form": {func(_ *routertest.World, x releaseWorld, o *routertest.Intent) {
			*o = x.edits("ben", `{"skill":7}`)
		}, intents.MalformedArgs, "/intent/args/args/skill"},
		"another skill": {func(_ *routertest.World, x releaseWorld, o *routertest.Intent) {
			*o = x.edits("ben", `{"skill":"ship"}`)
		}, intents.MalformedArgs, "/intent/args/args/skill"},
		"nothing edited": {func(_ *routertest.World, x releaseWorld, o *routertest.Intent) {
			*o = x.edits("ben", `{"skill":"pay","input":{"n":1}}`)
		}, intents.MalformedArgs, "/intent/args/args"},
		"by the asker":       {func(_ *routertest.World, x releaseWorld, o *routertest.Intent) { *o = x.edits("ana", edited) }, intents.RBACForbidden, "/actor/user_id"},
		"nobody is left":     {func(w *routertest.World, _ releaseWorld, _ *routertest.Intent) { user(w, "cleo", "user") }, intents.MalformedArgs, "/intent/args/decision"},
		"after its deadline": {func(w *routertest.World, _ releaseWorld, _ *routertest.Intent) { w.Clock.Move(intents.MaxHold) }, intents.MalformedArgs, "/intent/args/intent_id"},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			x := heldCall(w, catalog.Once, `{"once":true}`)
			o := x.edits("ben", edited)
			c.change(w, x, &o)
			if a := w.Want(w.Do(o), c.want); !strings.HasPrefix(a.Pointer, c.at) {
				t.Errorf("at %s: %s", a.Pointer, a.Reason)
			}
			if h := w.Dir.Holds("default"); len(h) != 1 || len(h[0].Approvals) != 0 {
				t.Errorf("%+v", h)
			}
		})
	}
}

// Only a task's intent that is shown whole can be edited.
func TestEditOfNoTask(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"], "mask": ["/input/card"]} if input.intent.type in {"plan.open", "skill.call"}`)
	a := w.Want(w.NewPlan("p1").Open(), intents.ApprovalRequired)
	refused := func(x releaseWorld, args, why string) {
		t.Helper()
		if a := w.Want(w.Do(x.edits("ben", args)), intents.MalformedArgs); !strings.Contains(a.Reason, why) {
			t.Errorf("%s", a.Reason)
		}
	}
	refused(releaseWorld{w, nil, a}, `{"plan_id":"p","task":"x"}`, "only the intent of a task")
	w.Want(releaseWorld{w, nil, a}.says("ben", catalog.DecisionApprove), intents.OK)
	w.Pin("pay", catalog.Pure)
	p := w.NewPlan("p1")
	w.Want(p.Claim(), intents.OK)
	w.Want(p.Plan(routertest.Steps(1, "pay")), intents.OK)
	refused(releaseWorld{w, nil, w.Want(p.Started(1).Call("pay", `{"card":"4111"}`), intents.ApprovalRequired)}, edited, "masked")
}

// TestApprovedWhileEdited: of a concurrent approval and edit one counts.
func TestApprovedWhileEdited(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	signed := [][]byte{w.Sign(x.word("ben", catalog.DecisionApprove)), w.Sign(x.edits("cleo", edited))}
	codes := make([]intents.Code, len(signed))
	var both sync.WaitGroup
	for i, raw := range signed {
		both.Go(func() { codes[i] = w.Send(raw).Code })
	}
	both.Wait()
	slices.Sort(codes)
	if !slices.Equal(codes, []intents.Code{intents.MalformedArgs, intents.OK}) {
		t.Fatalf("%v", codes)
	}
	out := x.outcome()
	if n := len(w.Bus.Calls("skill.call")); out.Code != intents.OK && out.Code != intents.Changed || (n == 1) != (out.Code == intents.OK) {
		t.Errorf("%s, %d calls", out.Code, n)
	}
	w.Restart()
}

// TestNodeApproved: an approval that names plan and step counts for the intent that the person has
// seen, and for no other that is held there by then; without the intent's digest it is refused.
func TestNodeApproved(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	people(w)
	w.Pin("pay", catalog.Once)
	w.Data("approval", `{"once":true}`)
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	steps := routertest.Steps(1, "pay")
	steps[0].ID = "paying"
	w.Want(p.Plan(steps), intents.OK)
	task := p.Started(1)
	x := releaseWorld{w, task, w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)}
	of := func(seen, run, node string) *intents.Answer {
		o := x.word("ben", catalog.DecisionApprove)
		o.Args = catalog.Approve{IntentID: seen, RunID: run, NodeID: node, Decision: catalog.DecisionApprove}
		return w.Do(o)
	}
	w.Want(of("", p.ID, "1"), intents.SchemaInvalid)
	for _, wrong := range [][2]string{{p.ID, "2"}, {p.ID, "other"}, {"p2", "1"}} {
		if a := w.Want(of(x.held.IntentID, wrong[0], wrong[1]), intents.MalformedArgs); a.Pointer != "/intent/args/run_id" {
			t.Errorf("%v: %s %s", wrong, a.Pointer, a.Reason)
		}
	}
	second := w.Want(task.Call("pay", `{"n":2}`), intents.ApprovalRequired)
	w.Want(releaseWorld{w, task, x.held}.says("ben", catalog.DecisionReject), intents.OK)
	if a := w.Want(of(x.held.IntentID, p.ID, "1"), intents.MalformedArgs); a.Pointer != "/intent/args/intent_id" {
		t.Errorf("what was seen waits no more, and another does: %s %s", a.Pointer, a.Reason)
	}
	x.held = second
	if got := x.state(of(second.IntentID, p.ID, "paying")); got.IntentID != second.IntentID || got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
	w.Restart()
}

// TestRequestedChanges: requested changes are a result that the next task reads.
func TestRequestedChanges(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true}`)
	w.Want(x.says("ben", catalog.DecisionRequestChanges), intents.OK)
	out := w.Want(x.outcome(), intents.ApprovalRejected)
	if string(out.Outcome.Result) != `{"by":"ben","changes":"not today"}` || out.Reason != "changes requested by ben: not today" {
		t.Errorf("%s %s", out.Outcome.Result, out.Reason)
	}
	next, o := x.next(nil) // co-authored: the author's next one names it as its cause
	next.held = w.Want(w.Do(o), intents.ApprovalRequired)
	w.Must(w.Router.ReleaseReady(t.Context()))
	w.Want(next.says("ben", catalog.DecisionApprove), intents.OK)
	w.Want(next.outcome(), intents.OK)
}

// TestApprovalOfADay: an intent stays held for a day, over a restart and another policy, and people
// release it in its last second.
func TestApprovalOfADay(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	x := heldCall(w, catalog.Once, `{"once":true,"count":2}`)
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	w.Clock.Move(12 * time.Hour)
	x = x.on(w.Restart())
	_, err := x.Policy.ReplaceTree(t.Context(), policies.Tree{Source: with("package writ.ext.more\n\n# METADATA\n# title: More\n# description: More is asked.\n# custom:\n#   id: ext.more\nhold contains {\"id\": \"ext.more\", \"reason\": \"More is asked.\", \"approvers\": [\"ben\"]} if input.intent.type == \"skill.call\"\n")}, x.Router.SelfProof)
	x.Must(err)
	x.Must(x.Router.PolicyChanged(t.Context()))
	x.Clock.Move(12*time.Hour - time.Second)
	x.Must(x.Router.ExpireHolds(t.Context()))
	if got := x.state(x.says("cleo", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	x.Want(x.outcome(), intents.OK)
	x.Restart()
}
