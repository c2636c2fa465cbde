package e2e

import (
	"context"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// These tests kill -9 a writ in the middle of a plan and start it again. The place of its death is
// fixed: it dies while an external skill server or model blocks it.

// porter is a mind for plans of two steps: list the parcels, then do something
// with them by the skill named second.
func porter(second string) *mind {
	return &mind{
		plan: func(in planning) model.Call {
			list := step(1, "list the parcels", "parcel_list", 0, "array<{parcel: string, weight: integer}>")
			do := step(in.FirstStep+1, "do it", second, 1, "{total: integer}")
			if in.FirstStep > 1 {
				do.Step = in.FirstStep
				return steps(do)
			}
			return steps(list, do)
		},
		act: func(in working) action {
			switch {
			case len(in.Calls) == 0:
				return use(in.Skills[0], `{"parcels":["p-1","p-2"]}`)
			case in.Step == 1:
				return extract
			default:
				return finish
			}
		},
		script: func(scripting) string {
			return "import json\nprint(json.dumps(json.load(open(input_file))['parcels']))"
		},
	}
}

// line is an intent as these tests compare it.
func line(o intent) string {
	s := o.Type + " " + string(o.Decision.Code)
	if o.Outcome != nil {
		s = o.Type + " " + string(o.Outcome.Code)
	}
	return s
}

// lines are the task intents of a step, without reads that say nothing.
func lines(list []intent, step int) []string {
	out := []string{}
	for _, o := range list {
		if o.Context.Step == step && o.Signer == intents.RoleTask && o.Type != "skill.load" {
			out = append(out, line(o))
		}
	}
	return out
}

func countOf(list []intent, typ string) int {
	n := 0
	for _, o := range list {
		if o.Type == typ && o.Decision.Verdict == intents.Allow {
			n++
		}
	}
	return n
}

// stepDone is everything that a task does for step 1, once.
var stepDone = []string{"skill.call OK", "exec_python OK", "write_memory OK", "step.finish OK"}

// TestKillWhilePlanning: the planner has loaded skills and thinks.
func TestKillWhilePlanning(t *testing.T) {
	t.Parallel()
	g, m := newGate(), porter("parcel_weigh")
	write := m.plan
	m.plan = func(in planning) model.Call {
		g.pass(context.Background())
		return write(in)
	}
	d := serveDepot(t, nil)
	x := boot(t, m, d.skills)
	id := x.ask(accepted)
	g.wait(t)
	if v := x.plan(id); v.Status != catalog.PlanPlanning || v.Epoch != 1 {
		t.Fatalf("plan is %s in epoch %d", v.Status, v.Epoch)
	}
	x.kill()
	close(g.open)
	x.start()
	v := x.finished(id)
	if v.Status != catalog.PlanComplete || v.Epoch != 2 || v.Revision != 1 || v.ReplanCount != 0 {
		t.Errorf("plan %+v", v)
	}
	list := x.records(id)
	if d := gocmp.Diff(stepDone, lines(list, 1)); d != "" {
		t.Errorf("step 1 (-want +got):\n%s", d)
	}
	if o, c, p := countOf(list, "plan.open"), countOf(list, "plan.claim"), countOf(list, "plan"); o != 1 || c != 2 || p != 1 {
		t.Errorf("opened %d times, claimed %d times, planned %d times", o, c, p)
	}
	if a, b := len(d.ids("parcel_list")), len(d.ids("parcel_weigh")); a != 1 || b != 1 {
		t.Errorf("the skills were called %d and %d times", a, b)
	}
}

// TestKillBetweenSteps: step 1 has been done, and the task of step 2, if there
// is one already, has not begun to act.
func TestKillBetweenSteps(t *testing.T) {
	t.Parallel()
	g, m := newGate(), porter("parcel_send")
	decide := m.act
	m.act = func(in working) action {
		if in.Step == 2 {
			g.pass(context.Background())
		}
		return decide(in)
	}
	d := serveDepot(t, nil)
	x := boot(t, m, d.skills)
	x.holdNothing()
	id := x.ask(func(_, data string) bool { return strings.Contains(data, `"step_done"`) })
	x.kill()
	close(g.open)
	x.start()
	v := x.finished(id)
	if v.Status != catalog.PlanComplete || v.Epoch != 2 || v.Revision != 1 || v.ReplanCount != 0 {
		t.Errorf("plan %+v", v)
	}
	list := x.records(id)
	if d := gocmp.Diff(stepDone, lines(list, 1)); d != "" {
		t.Errorf("step 1 (-want +got):\n%s", d)
	}
	if a, b := len(d.ids("parcel_list")), len(d.ids("parcel_send")); a != 1 || b != 1 {
		t.Errorf("the skills were called %d and %d times", a, b)
	}
}

// TestKillDuringPureCall: the call is committed and dispatched. Nothing came of
// it, so it is abandoned and the step runs again in the same revision.
func TestKillDuringPureCall(t *testing.T) {
	t.Parallel()
	g := newGate()
	d := serveDepot(t, map[string]*gate{"parcel_weigh": g})
	x := boot(t, porter("parcel_weigh"), d.skills)
	id := x.ask(accepted)
	g.wait(t)
	before := x.plan(id)
	x.kill()
	x.start()
	v := x.finished(id)
	if v.Status != catalog.PlanComplete || v.Epoch != 2 || v.Revision != 1 || v.ReplanCount != 0 {
		t.Errorf("plan %+v", v)
	}
	if d := gocmp.Diff(before.Steps[0], v.Steps[0]); d != "" {
		t.Errorf("step 1 before and after (-before +after):\n%s", d)
	}
	list := x.records(id)
	if d := gocmp.Diff(stepDone, lines(list, 1)); d != "" {
		t.Errorf("step 1 (-want +got):\n%s", d)
	}
	want := []string{"read_memory OK", "skill.call ABANDONED", "read_memory OK", "transcript.get OK", "skill.call OK", "write_memory OK", "step.finish OK"}
	if d := gocmp.Diff(want, lines(list, 2)); d != "" {
		t.Errorf("step 2 (-want +got):\n%s", d)
	}
	if a, b := len(d.ids("parcel_list")), d.ids("parcel_weigh"); a != 1 || len(b) != 2 {
		t.Errorf("the skills were called %d and %d times", a, len(b))
	}
}

// TestKillDuringIdempotentCall: the same intent is dispatched again, under the
// same intent_id, before writ is ready; the step's new task gets its result.
func TestKillDuringIdempotentCall(t *testing.T) {
	t.Parallel()
	g := newGate()
	d := serveDepot(t, map[string]*gate{"parcel_label": g})
	x := boot(t, porter("parcel_label"), d.skills)
	id := x.ask(accepted)
	g.wait(t)
	x.kill()
	x.start()
	v := x.finished(id)
	if v.Status != catalog.PlanComplete || v.Epoch != 2 || v.Revision != 1 || v.ReplanCount != 0 {
		t.Errorf("plan %+v", v)
	}
	list := x.records(id)
	want := []string{"read_memory OK", "skill.call OK", "read_memory OK", "transcript.get OK", "write_memory OK", "step.finish OK"}
	if d := gocmp.Diff(want, lines(list, 2)); d != "" {
		t.Errorf("step 2 (-want +got):\n%s", d)
	}
	if ids := d.ids("parcel_label"); len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("called under %q: not twice under one intent_id", ids)
	}
}

// TestKillDuringOnceCall: its outcome is unknown, so it is never repeated. The step continues, and
// its model is told that; here it gives up, and an equal call of the new plan is refused.
func TestKillDuringOnceCall(t *testing.T) {
	t.Parallel()
	g, m := newGate(), porter("parcel_send")
	write, decide := m.plan, m.act
	m.plan = func(in planning) model.Call {
		out := stepsOf(write(in))
		if in.Failed != nil {
			out[0].Skills = append(out[0].Skills, "parcel_state")
		}
		return steps(out...)
	}
	m.act = func(in working) action {
		if len(in.Calls) == 1 && in.Calls[0].Error != "" { // refused: look instead
			return use("parcel_state", `{}`)
		}
		if len(in.Calls) == 1 && in.Calls[0].Output == nil {
			return insufficient("nobody knows whether it was sent", "look")
		}
		return decide(in)
	}
	d := serveDepot(t, map[string]*gate{"parcel_send": g})
	x := boot(t, m, d.skills)
	x.holdNothing()
	id := x.ask(accepted)
	g.wait(t)
	x.kill()
	x.start()
	v := x.finished(id)
	if v.Status != catalog.PlanComplete || v.Epoch != 2 || v.Revision != 2 || v.ReplanCount != 1 {
		t.Fatalf("plan %+v", v)
	}
	if h := v.History; len(h) != 1 || h[0].Trigger != "insufficient" || h[0].FailedStep != 2 {
		t.Errorf("replan history %+v", h)
	}
	sent := d.ids("parcel_send")
	if a, c := len(d.ids("parcel_list")), len(d.ids("parcel_state")); a != 1 || len(sent) != 1 || c != 1 {
		t.Fatalf("listed %d times, sent %d times, looked %d times", a, len(sent), c)
	}
	list := x.records(id)
	if d := gocmp.Diff(stepDone, lines(list, 1)); d != "" {
		t.Errorf("step 1 (-want +got):\n%s", d)
	}
	want := [][]string{ // the new step has a number of its own
		{"read_memory OK", "skill.call INDETERMINATE", "read_memory OK", "transcript.get OK", "step.finish OK"},
		{"read_memory OK", "skill.call CONFLICT_IDEMPOTENCY", "skill.call OK", "write_memory OK", "step.finish OK"},
	}
	if d := gocmp.Diff(want, [][]string{lines(list, 2), lines(list, 3)}); d != "" {
		t.Errorf("steps 2 and 3 (-want +got):\n%s", d)
	}
	plans := m.plannings()
	failed := plans[len(plans)-1].Failed
	if failed == nil || failed.Trigger != "insufficient" {
		t.Fatalf("the planner was told of %+v", failed)
	}
	history := failed.IntentHistory
	if len(history) != 1 || history[0].IntentID != sent[0] || history[0].Type != "skill.call" || history[0].Code != intents.Indeterminate {
		t.Errorf("the planner was told of %+v, and %s was sent", history, sent[0])
	}
}
