package e2e

import (
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// yard is a mind for three steps side by side and a fourth that joins their results.
func yard() *mind {
	const total = "{total: integer}"
	return &mind{
		plan: func(planning) model.Call {
			list := step(1, "list the parcels", "parcel_list", 0, "{parcels: array<{parcel: string, weight: integer}>}")
			label, weigh, join := step(2, "label them", "parcel_label", 0, total), step(3, "weigh them", "parcel_weigh", 0, total), step(4, "add it all up", "", 0, total)
			label.Parallel, weigh.Parallel, join.Inputs = true, true, []int{1, 2, 3}
			return steps(list, label, weigh, join)
		},
		act: func(in working) action {
			switch {
			case len(in.Skills) == 0:
				script := "import json\nd = json.load(open(input_file))\nprint(json.dumps({'total': len(d['s1']['parcels']) + d['s2']['total'] + d['s3']['total']}))"
				return action{call: call("exec_python", marshalled(map[string]any{"script": script, "inputs": in.Labels}))}
			case len(in.Calls) == 0:
				return use(in.Skills[0], "{}")
			}
			return finish
		},
	}
}

// TestKillSideBySide: two steps are at work and one is done when writ dies. The one that
// is done stays; the others run again, side by side, and the plan goes on to its end. The
// intent that may be sent twice keeps its intent_id.
func TestKillSideBySide(t *testing.T) {
	t.Parallel()
	label, weigh := newGate(), newGate()
	d := serveDepot(t, map[string]*gate{"parcel_label": label, "parcel_weigh": weigh})
	x := boot(t, yard(), d.skills)
	id := x.ask(func(_, data string) bool { return strings.Contains(data, `"step_done"`) })
	label.wait(t)
	weigh.wait(t)
	before := x.plan(id)
	if before.Steps[1].Status != catalog.StepRunning || before.Steps[2].Status != catalog.StepRunning || before.Steps[3].Status != catalog.StepPending {
		t.Fatalf("%+v", before.Steps)
	}
	x.kill()
	x.start()
	v := x.finished(id)
	if v.Status != catalog.PlanComplete || v.Epoch != 2 || v.Revision != 1 || v.ReplanCount != 0 {
		t.Fatalf("plan %+v", v)
	}
	for _, s := range v.Steps {
		if s.Status != catalog.StepDone {
			t.Errorf("step %d is %s", s.Step, s.Status)
		}
	}
	if a, b := before.Steps[0], v.Steps[0]; a.TaskID != b.TaskID || a.MemoryKey != b.MemoryKey {
		t.Errorf("step 1 ran again: %+v, then %+v", a, b)
	}
	listed, labelled, weighed := d.ids("parcel_list"), d.ids("parcel_label"), d.ids("parcel_weigh")
	if len(listed) != 1 || len(weighed) != 2 || len(slices.Compact(labelled)) != 1 {
		t.Errorf("listed %v, labelled %v, weighed %v", listed, labelled, weighed)
	}
}
