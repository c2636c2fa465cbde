package router_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// replayIntent repeats a run of ana.
func replayIntent(r *routertest.Run, a catalog.RunReplay) routertest.Intent {
	return routertest.Intent{By: r.Gateway, Type: "run.replay", Args: a, User: r.User, Key: catalog.RandomKey()}
}

// repeated is a replay, claimed.
func repeated(t *testing.T, r *routertest.Run, a catalog.RunReplay) (*routertest.Run, catalog.PlanDetails) {
	t.Helper()
	answer := r.Want(r.Do(replayIntent(r, a)), intents.OK)
	p := *r.Plan
	p.ID, p.Epoch, p.Digest = routertest.Result[catalog.PlanView](r.World, answer).PlanID, 0, answer.IntentID
	again := &routertest.Run{Plan: &p, Nodes: map[string]int{}}
	p.Session = routertest.Session
	return again, again.Claimed()
}

// runNodes runs the nodes as a driver would, in the order of the details, and closes the run by its
// result.
func runNodes(t *testing.T, r *routertest.Run, told catalog.PlanDetails) (signed []*intents.Answer) {
	t.Helper()
	nodes := make(map[int]string)
	for id, step := range r.Nodes {
		nodes[step] = id
	}
	for len(told.Next) > 0 {
		n := told.Next[0]
		switch id := nodes[n.Step]; n.Next {
		case catalog.NextSkip:
			told = routertest.DetailsOf(r.World, r.Want(r.Do(r.SkipIntent(id)), intents.OK))
		case catalog.NextRun:
			a := runNode(r, id, &signed)
			told = routertest.DetailsOf(r.World, r.Want(a, intents.OK))
		default:
			t.Logf("%s: %s", id, n.Reason)
			told.Next = nil
		}
	}
	status := "complete"
	if a := r.Close(status); a.Code != intents.OK {
		r.Want(r.Close("failed"), intents.OK)
	}
	return signed
}

// runNode executes a node, and ends its task as its intent has ended, or as its retained outcome
// says.
func runNode(r *routertest.Run, id string, signed *[]*intents.Answer) *intents.Answer {
	o, task := r.BeginIntent(id)
	told := routertest.DetailsOf(r.World, r.Want(r.Do(o), intents.OK))
	n := &routertest.Node{Task: task}
	if told.Kept != nil {
		return n.Ends(told.Kept.Status, told.Kept.Intent)
	}
	n.NodeIntent = *told.Intent
	a := n.Sign()
	*signed = append(*signed, a)
	allowed := a.Decision != nil && slices.Contains(a.Decision.PolicyIDs, "writ.replay.allowed")
	if a.Code == intents.OK || told.DryRun && allowed {
		return n.Ends("done", a.IntentID)
	}
	return n.Ends("failed", "")
}

// TestReplayFreeze: a replay runs nodes without effects on the recorded inputs, names where their
// results differ, and sends nothing else.
func TestReplayFreeze(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	runNodes(t, r, catalog.PlanDetails{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	if v := r.View(); v.Status != catalog.PlanComplete {
		t.Fatalf("%+v", v)
	}
	before := len(w.Bus.Calls("skill.call"))
	again, told := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayFreeze})
	if events := differing(runNodes(t, again, told)); len(events) != 0 {
		t.Errorf("differs: %s", events)
	}
	v := again.View()
	if v.Status != catalog.PlanComplete || v.Run.ReplayOf != r.ID || v.Steps[1].Replayed == 0 || v.Steps[0].Replayed != 0 {
		t.Errorf("%+v", v)
	}
	for _, c := range w.Bus.Calls("skill.call")[before:] {
		if c.Ticket.Pins[0].Effect != string(catalog.Pure) {
			t.Errorf("%s was called again", c.Ticket.Pins[0].Skill)
		}
	}
	if n := len(w.Bus.Calls("skill.call")) - before; n != 2 { // parse and end
		t.Errorf("%d calls", n)
	}

	w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		return routertest.Done(map[string]any{"output": map[string]any{"count": 3, "rows": []int{1, 3}, "id": "x7", "more": "not kept"}})
	})
	again, told = repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayFreeze})
	events := differing(runNodes(t, again, told))
	if len(events) != 2 || !strings.Contains(events[0], `"path":"/output/rows/1"`) || !strings.Contains(events[0], `"node":"parse"`) {
		t.Errorf("differs: %s", events)
	}
	if v := again.View(); v.Status != catalog.PlanComplete {
		t.Errorf("%+v", v)
	}

	again, told = repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "end", Mode: catalog.ReplayFreeze})
	if got := next(told); got != "run 5;" {
		t.Errorf("from the end: %s", got)
	}
	if v := again.View(); v.Steps[0].Status != catalog.StepDone || v.Steps[3].Status != catalog.StepSkipped || v.Steps[0].Replayed == 0 {
		t.Errorf("%+v", v.Steps)
	}
}

// differing are the reported differences.
func differing(signed []*intents.Answer) (out []string) {
	for _, a := range signed {
		if a.Outcome == nil {
			continue
		}
		for _, f := range a.Outcome.Events {
			if f.Event == "run.differs" {
				out = append(out, string(f.Payload))
			}
		}
	}
	return out
}

// TestReplayShadow: a shadow computes inputs again; an intent without a recorded outcome is
// decided, and sent nowhere.
func TestReplayShadow(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(map[string]any{"output": map[string]any{"count": 1, "rows": []int{}}})))
	r.Begin("parse").Done() // no edge continues
	for _, node := range []string{"upload", "ok", "bad", "end"} {
		r.Want(r.Do(r.SkipIntent(node)), intents.OK)
	}
	r.Want(r.Close("complete"), intents.OK)
	w.Bus.On("skill.call", leads)
	before := len(w.Bus.Calls("skill.call"))
	again, told := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayShadow})
	signed := runNodes(t, again, told)
	v := again.View()
	if len(signed) != 2 || signed[1].Code != intents.TaskScope || v.Steps[1].Status != catalog.StepDone {
		t.Errorf("%+v %+v", signed[1], v.Steps)
	}
	if n := len(w.Bus.Calls("skill.call")) - before; n != 1 {
		t.Errorf("%d calls", n)
	}
	if v.Status != catalog.PlanFailed { // what the upload would have answered is unknown
		t.Errorf("%s", v.Status)
	}
}

// TestReplayRefused: who may repeat which run.
func TestReplayRefused(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	bad := func(o routertest.Intent, code intents.Code, pointer, reason string) {
		t.Helper()
		a := w.Do(o)
		if refused(t, a, code, reason); a.Pointer != pointer {
			t.Errorf("at %s, want %s", a.Pointer, pointer)
		}
	}
	freeze := catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayFreeze}
	bad(replayIntent(r, freeze), intents.MalformedArgs, "/intent/args/run_id", "has not ended")
	runNodes(t, r, catalog.PlanDetails{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	gone := freeze
	gone.RunID = "plan_none"
	bad(replayIntent(r, gone), intents.TaskScope, "/intent/args/run_id", "no such run of this user")
	nowhere := freeze
	nowhere.FromNode = "elsewhere"
	bad(replayIntent(r, nowhere), intents.MalformedArgs, "/intent/args/from_node", "no such node")
	ben := replayIntent(r, freeze)
	ben.User = "ben"
	bad(ben, intents.TaskScope, "/intent/args/run_id", "runs:replay:any")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "boss", Capabilities: []string{"plans:*", "runs:replay:any", "runs:replay"}}}), intents.OK)
	ben.Roles = []string{"boss"}
	w.OK(ben)
	effects := freeze
	effects.RepeatEffects = true
	w.Want(w.Do(replayIntent(r, effects)), intents.PolicyDenied) // nobody may approve it
	w.Approval(`{"once":false}`, "eve")
	w.Want(w.Do(replayIntent(r, effects)), intents.ApprovalRequired)

	// The task of a node with a retained outcome signs nothing but its end.
	again, _ := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "upload", Mode: catalog.ReplayFreeze})
	o, task := again.BeginIntent("upload")
	told := routertest.DetailsOf(w, w.Want(w.Do(o), intents.OK))
	if told.Kept == nil || told.Kept.Status != "done" || told.Intent != nil {
		t.Fatalf("%+v", told)
	}
	call := task.CallIntent("crm.put", fmt.Sprintf(`{"key":"up/%s","rows":[1,2]}`, again.ID))
	bad(call, intents.TaskScope, "/intent/type", "")
	n := &routertest.Node{Task: task}
	refused(t, n.Ends("failed", ""), intents.MalformedArgs, "is done")
	w.Want(n.Ends("done", told.Kept.Intent), intents.OK)
}

// TestReplayRepeatsEffects: a once node acts once more in a replay that requested it, after people
// have approved that, and never before or without.
func TestReplayRepeatsEffects(t *testing.T) {
	w := flowWorld(t)
	people(w)
	w.Approval(`{"once":false}`, "ben")
	puts := func() (n int) {
		for _, c := range w.Bus.Calls("skill.call") {
			if c.Ticket.Pins[0].Effect != string(catalog.Pure) {
				n++
			}
		}
		return n
	}
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	runNodes(t, r, catalog.PlanDetails{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	before := puts()
	args := catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayFreeze}
	again, told := repeated(t, r, args)
	runNodes(t, again, told)
	if before != 2 || puts() != before {
		t.Fatalf("%d effects, then %d without permission", before, puts())
	}

	args.RepeatEffects = true
	intent := replayIntent(r, args)
	x := releaseWorld{w, nil, w.Want(w.Do(intent), intents.ApprovalRequired)}
	if puts() != before {
		t.Errorf("%d effects before approval", puts())
	}
	x.state(x.says("ben", catalog.DecisionApprove))
	answer := x.outcome()
	p := *r.Plan
	p.ID, p.Epoch, p.Digest, p.Session = routertest.Result[catalog.PlanView](w, answer).PlanID, 0, answer.IntentID, routertest.Session
	again = &routertest.Run{Plan: &p, Nodes: map[string]int{}}
	runNodes(t, again, again.Claimed())
	if v := again.View(); v.Status != catalog.PlanComplete || puts() != 2*before {
		t.Errorf("%s, %d effects, want %d", v.Status, puts(), 2*before)
	}
	if a := w.Want(w.Do(intent), intents.OK); !a.Replayed || puts() != 2*before { // the same intent is the same replay
		t.Errorf("again: %+v, %d effects", a, puts())
	}
}

// TestReplayOfErased: if the result of an effect was erased, a freeze that needs it fails, and
// sends nothing. A run whose inputs were erased is not repeated.
func TestReplayOfErased(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	r.Begin("parse").Done()
	n := r.Begin("upload")
	upload := w.Want(n.Sign(), intents.OK)
	runNodes(t, r, routertest.DetailsOf(w, w.Want(n.Ends("done", upload.IntentID), intents.OK)))
	w.Want(erase(w, upload, catalog.ErasesResult), intents.OK)
	before := len(w.Bus.Calls("skill.call"))
	args := catalog.RunReplay{RunID: r.ID, FromNode: "upload", Mode: catalog.ReplayFreeze}
	again, told := repeated(t, r, args)
	signed := runNodes(t, again, told)
	if v := again.View(); v.Status != catalog.PlanFailed || v.Steps[1].Status != catalog.StepFailed || len(signed) != 0 || len(w.Bus.Calls("skill.call")) != before {
		t.Errorf("%s, %d intents, %d calls: %+v", v.Status, len(signed), len(w.Bus.Calls("skill.call"))-before, v.Steps[1])
	}

	w.Want(erase(w, w.Do(r.StartIntent("lead", `{"file":"f1"}`)), catalog.ErasesEnvelope), intents.OK)
	args.FromNode = "parse"
	a := w.Do(replayIntent(r, args))
	if refused(t, a, intents.MalformedArgs, "the inputs of the run were erased"); a.Pointer != "/intent/args/run_id" {
		t.Errorf("at %s", a.Pointer)
	}
}
