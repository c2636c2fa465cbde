package router_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

// replayOrder repeats a run of ana.
func replayOrder(r *routertest.Run, a catalog.RunReplay) routertest.Order {
	return routertest.Order{By: r.Gateway, Type: "run.replay", Args: a, User: r.User, Key: catalog.RandomKey()}
}

// repeated is a replay, claimed.
func repeated(t *testing.T, r *routertest.Run, a catalog.RunReplay) (*routertest.Run, catalog.Told) {
	t.Helper()
	answer := r.Want(r.Do(replayOrder(r, a)), intents.OK)
	p := *r.Plan
	p.ID, p.Epoch, p.Digest = routertest.Result[catalog.PlanView](r.World, answer).PlanID, 0, answer.IntentID
	again := &routertest.Run{Plan: &p, Nodes: map[string]int{}}
	p.Session = routertest.Session
	return again, again.Claimed()
}

// drive carries a run out as its driver would, in the order that it is told, and closes it as it comes.
func drive(t *testing.T, r *routertest.Run, told catalog.Told) (sealed []*intents.Answer) {
	t.Helper()
	nodes := make(map[int]string)
	for id, step := range r.Nodes {
		nodes[step] = id
	}
	for len(told.Next) > 0 {
		n := told.Next[0]
		switch id := nodes[n.Step]; n.Next {
		case catalog.NextSkip:
			told = routertest.Told(r.World, r.Want(r.Do(r.SkipOrder(id)), intents.OK))
		case catalog.NextRun:
			a := driveNode(r, id, &sealed)
			told = routertest.Told(r.World, r.Want(a, intents.OK))
		default:
			t.Logf("%s: %s", id, n.Reason)
			told.Next = nil
		}
	}
	status := "complete"
	if a := r.Close(status); a.Code != intents.OK {
		r.Want(r.Close("failed"), intents.OK)
	}
	return sealed
}

// driveNode carries a node out, and ends its task as its order has ended, or as what it keeps says.
func driveNode(r *routertest.Run, id string, sealed *[]*intents.Answer) *intents.Answer {
	o, task := r.BeginOrder(id)
	told := routertest.Told(r.World, r.Want(r.Do(o), intents.OK))
	n := &routertest.Node{Task: task}
	if told.Kept != nil {
		return n.Ends(told.Kept.Status, told.Kept.Order)
	}
	n.Told = *told.Order
	a := n.Seal()
	*sealed = append(*sealed, a)
	allowed := a.Decision != nil && slices.Contains(a.Decision.PolicyIDs, "writ.replay.allowed")
	if a.Code == intents.OK || told.DryRun && allowed {
		return n.Ends("done", a.IntentID)
	}
	return n.Ends("failed", "")
}

// TestReplayFreeze: a replay runs what has no effect on the recorded inputs, names where its results differ, and
// sends nothing else.
func TestReplayFreeze(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	drive(t, r, catalog.Told{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	if v := r.View(); v.Status != catalog.PlanComplete {
		t.Fatalf("%+v", v)
	}
	before := len(w.Bus.Calls("skill.call"))
	again, told := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayFreeze})
	if facts := differing(drive(t, again, told)); len(facts) != 0 {
		t.Errorf("differs: %s", facts)
	}
	v := again.View()
	if v.Status != catalog.PlanComplete || v.Run.Of != r.ID || v.Steps[1].Replayed == 0 || v.Steps[0].Replayed != 0 {
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
	facts := differing(drive(t, again, told))
	if len(facts) != 2 || !strings.Contains(facts[0], `"path":"/output/rows/1"`) || !strings.Contains(facts[0], `"node":"parse"`) {
		t.Errorf("differs: %s", facts)
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

// differing are the facts of differences.
func differing(sealed []*intents.Answer) (out []string) {
	for _, a := range sealed {
		if a.Outcome == nil {
			continue
		}
		for _, f := range a.Outcome.Facts {
			if f.Event == "run.differs" {
				out = append(out, string(f.Payload))
			}
		}
	}
	return out
}

// TestReplayShadow: a shadow computes inputs anew; what it has no recorded outcome of is decided, and sent nowhere.
func TestReplayShadow(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(map[string]any{"output": map[string]any{"count": 1, "rows": []int{}}})))
	r.Begin("parse").Done() // no edge leads on
	for _, node := range []string{"upload", "ok", "bad", "end"} {
		r.Want(r.Do(r.SkipOrder(node)), intents.OK)
	}
	r.Want(r.Close("complete"), intents.OK)
	w.Bus.On("skill.call", leads)
	before := len(w.Bus.Calls("skill.call"))
	again, told := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayShadow})
	sealed := drive(t, again, told)
	v := again.View()
	if len(sealed) != 2 || sealed[1].Code != intents.TaskScope || v.Steps[1].Status != catalog.StepDone {
		t.Errorf("%+v %+v", sealed[1], v.Steps)
	}
	if n := len(w.Bus.Calls("skill.call")) - before; n != 1 {
		t.Errorf("%d calls", n)
	}
	if v.Status != catalog.PlanFailed { // what the upload would have answered nobody knows
		t.Errorf("%s", v.Status)
	}
}

// TestReplayRefused: who may repeat which run.
func TestReplayRefused(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	bad := func(o routertest.Order, code intents.Code, pointer, reason string) {
		t.Helper()
		a := w.Do(o)
		if refused(t, a, code, reason); a.Pointer != pointer {
			t.Errorf("at %s, want %s", a.Pointer, pointer)
		}
	}
	freeze := catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayFreeze}
	bad(replayOrder(r, freeze), intents.MalformedArgs, "/intent/args/run_id", "has not ended")
	drive(t, r, catalog.Told{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	gone := freeze
	gone.RunID = "plan_none"
	bad(replayOrder(r, gone), intents.MalformedArgs, "/intent/args/run_id", "no such run")
	nowhere := freeze
	nowhere.FromNode = "elsewhere"
	bad(replayOrder(r, nowhere), intents.MalformedArgs, "/intent/args/from_node", "no such node")
	ben := replayOrder(r, freeze)
	ben.User = "ben"
	bad(ben, intents.TaskScope, "/intent/args/run_id", "runs:replay:any")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "boss", Capabilities: []string{"plans:*", "runs:replay:any", "runs:replay"}}}), intents.OK)
	ben.Roles = []string{"boss"}
	w.OK(ben)
	effects := freeze
	effects.RepeatEffects = true
	w.Want(w.Do(replayOrder(r, effects)), intents.PolicyDenied) // nobody may approve it
	w.Approval(`{"once":false}`, "eve")
	w.Want(w.Do(replayOrder(r, effects)), intents.ApprovalRequired)

	// The task of a node that keeps its outcome seals nothing but its end.
	again, _ := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "upload", Mode: catalog.ReplayFreeze})
	o, task := again.BeginOrder("upload")
	told := routertest.Told(w, w.Want(w.Do(o), intents.OK))
	if told.Kept == nil || told.Kept.Status != "done" || told.Order != nil {
		t.Fatalf("%+v", told)
	}
	call := task.CallOrder("crm.put", fmt.Sprintf(`{"key":"up/%s","rows":[1,2]}`, again.ID))
	bad(call, intents.TaskScope, "/intent/type", "")
	n := &routertest.Node{Task: task}
	refused(t, n.Ends("failed", ""), intents.MalformedArgs, "is done")
	w.Want(n.Ends("done", told.Kept.Order), intents.OK)
}

// TestReplayRepeatsEffects: what acts once acts once more in a replay whose orderer asked for it,
// after people have approved that, and never before or without.
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
	drive(t, r, catalog.Told{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	before := puts()
	args := catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: catalog.ReplayFreeze}
	again, told := repeated(t, r, args)
	drive(t, again, told)
	if before != 2 || puts() != before {
		t.Fatalf("%d effects, then %d without permission", before, puts())
	}

	args.RepeatEffects = true
	order := replayOrder(r, args)
	x := asked{w, nil, w.Want(w.Do(order), intents.ApprovalRequired)}
	if puts() != before {
		t.Errorf("%d effects before approval", puts())
	}
	x.state(x.says("ben", catalog.DecisionApprove))
	answer := x.outcome()
	p := *r.Plan
	p.ID, p.Epoch, p.Digest, p.Session = routertest.Result[catalog.PlanView](w, answer).PlanID, 0, answer.IntentID, routertest.Session
	again = &routertest.Run{Plan: &p, Nodes: map[string]int{}}
	drive(t, again, again.Claimed())
	if v := again.View(); v.Status != catalog.PlanComplete || puts() != 2*before {
		t.Errorf("%s, %d effects, want %d", v.Status, puts(), 2*before)
	}
	if a := w.Want(w.Do(order), intents.OK); !a.Replayed || puts() != 2*before { // the same order is the same replay
		t.Errorf("again: %+v, %d effects", a, puts())
	}
}

// TestReplayOfErased: where what an effect gave was erased, a freeze that needs it fails, and sends
// nothing. A run whose inputs were erased is not repeated.
func TestReplayOfErased(t *testing.T) {
	w := flowWorld(t)
	r := w.BegunRun("r1", "lead", `{"file":"f1"}`)
	r.Begin("parse").Done()
	n := r.Begin("upload")
	upload := w.Want(n.Seal(), intents.OK)
	drive(t, r, routertest.Told(w, w.Want(n.Ends("done", upload.IntentID), intents.OK)))
	w.Want(erase(w, upload, catalog.ErasesResult), intents.OK)
	before := len(w.Bus.Calls("skill.call"))
	args := catalog.RunReplay{RunID: r.ID, FromNode: "upload", Mode: catalog.ReplayFreeze}
	again, told := repeated(t, r, args)
	sealed := drive(t, again, told)
	if v := again.View(); v.Status != catalog.PlanFailed || v.Steps[1].Status != catalog.StepFailed || len(sealed) != 0 || len(w.Bus.Calls("skill.call")) != before {
		t.Errorf("%s, %d orders, %d calls: %+v", v.Status, len(sealed), len(w.Bus.Calls("skill.call"))-before, v.Steps[1])
	}

	w.Want(erase(w, w.Do(r.StartOrder("lead", `{"file":"f1"}`)), catalog.ErasesOrder), intents.OK)
	args.FromNode = "parse"
	a := w.Do(replayOrder(r, args))
	if refused(t, a, intents.MalformedArgs, "the inputs of the run were erased"); a.Pointer != "/intent/args/run_id" {
		t.Errorf("at %s", a.Pointer)
	}
}
