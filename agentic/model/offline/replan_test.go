package offline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

func planned(t *testing.T, w world) (planInput, []catalog.PlanStep) {
	t.Helper()
	in := planInput{Task: strongest, FirstStep: 1, MaxSteps: 10}
	_, out := w.planned(w.planner(t, in))
	if out.Infeasible != "" {
		t.Fatal(out.Infeasible)
	}
	return in, out.Steps
}

// The second step failed: the first stays, and the rows are ranked without the skill.
func TestReplanKeepsCompletedSteps(t *testing.T) {
	w := quakeWorld(t)
	in, steps := planned(t, w)
	in.FirstStep = 3
	in.Completed = []json.RawMessage{json.RawMessage(`{"step":{"step":1}}`)}
	in.Failed = &failedStep{Step: steps[1], Reason: "rank could not be used: it is down."}
	_, out := w.planned(w.planner(t, in))
	if len(out.Steps) != 1 {
		t.Fatalf("%+v", out)
	}
	s := out.Steps[0]
	if s.Step != 3 || !slices.Equal(s.Inputs, []int{1}) || len(s.Skills) != 0 || s.ReturnSpec.Shape != steps[1].ReturnSpec.Shape {
		t.Errorf("%+v", s)
	}
	rows := json.RawMessage(`[{"place":"a","magnitude":1},{"place":"b","magnitude":3},{"place":"c","magnitude":3}]`)
	o := outcome{results: []stepResult{{Step: steps[0], Result: rows}}}
	if !(world{}).step(t, &o, strongest, s) {
		if o.partial {
			return
		}
		t.Fatalf("%+v", o.failed)
	}
	sameJSON(t, json.RawMessage(`[{"rank":1,"place":"b","magnitude":3},{"rank":2,"place":"c","magnitude":3},{"rank":3,"place":"a","magnitude":1}]`), o.results[1].Result)
}

func TestReplanTriesAnotherSkill(t *testing.T) {
	w := quakeWorld(t)
	other := w[0]
	other.Name = "earthquake_archive"
	w = append(w, other)
	in, steps := planned(t, w)
	if steps[0].Skills[0] != "earthquake_feed" {
		t.Fatalf("%+v", steps)
	}
	in.Failed = &failedStep{Step: steps[0], Reason: "earthquake_feed is down"}
	_, out := w.planned(w.planner(t, in))
	if planSkills(out) != "earthquake_archive rank" || out.Steps[0].Step != 1 {
		t.Errorf("%+v", out)
	}
}

func TestReplanGivesUp(t *testing.T) {
	w := quakeWorld(t)
	in, steps := planned(t, w)
	in.Failed = &failedStep{Step: steps[0], Reason: "earthquake_feed is down"}
	if _, out := w.planned(w.planner(t, in)); !strings.Contains(out.Infeasible, "earthquake_feed is down.") {
		t.Errorf("%+v", out)
	}
}

// TestPlanAfterViolations: a plan that cannot work is corrected once.
func TestPlanAfterViolations(t *testing.T) {
	w := quakeWorld(t)
	wrong := map[string]any{"violations": []string{"step 2: place is not in the output schema of rank"}}
	in := planInput{Task: strongest, FirstStep: 1, MaxSteps: 10}
	k := w.planner(t, in)
	w.planned(k)
	k.answer(wrong)
	if _, out := w.planned(k); planSkills(out) != "earthquake_feed" {
		t.Errorf("%+v", out)
	}
	k.answer(wrong)
	if _, out := w.planned(k); !strings.Contains(out.Infeasible, "place is not in the output schema") {
		t.Errorf("the same refused plan again: %+v", out)
	}
	k = w[:1].planner(t, in)
	w.planned(k)
	k.answer(wrong)
	if _, out := w.planned(k); out.Infeasible == "" {
		t.Errorf("the same refused plan again: %+v", out)
	}
	in.MaxSteps = 1
	if _, out := w.planned(w.planner(t, in)); out.Infeasible != "" {
		t.Error(out.Infeasible)
	}
}
