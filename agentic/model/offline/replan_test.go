package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

func planned(t *testing.T, w world) (model.PlanInput, []model.Step) {
	t.Helper()
	var names []string
	for _, s := range w {
		names = append(names, s.Name)
	}
	in := model.PlanInput{Task: strongest, Skills: w.skills(names), FirstStep: 1, MaxSteps: 10}
	out := ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in)
	if !out.Feasible {
		t.Fatal(out.Reason)
	}
	return in, out.Steps
}

// The second step failed: the first stays, and the rows are ranked without the skill.
func TestReplanKeepsCompletedSteps(t *testing.T) {
	in, steps := planned(t, quakeWorld(t))
	in.FirstStep = 2
	in.Completed = []model.CompletedStep{{Step: steps[0]}}
	in.Failed = &model.FailedStep{Step: steps[1], Trigger: "insufficient", Reason: "rank could not be used: it is down."}
	out := ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in)
	if !out.Feasible || len(out.Steps) != 1 {
		t.Fatalf("%+v", out)
	}
	s := out.Steps[0]
	if s.Step != 2 || s.InputFromStep != 1 || len(s.Skills) != 0 || s.ReturnSpec.Shape != steps[1].ReturnSpec.Shape {
		t.Errorf("%+v", s)
	}
	rows := json.RawMessage(`[{"place":"a","magnitude":1},{"place":"b","magnitude":3},{"place":"c","magnitude":3}]`)
	o := outcome{results: []model.StepResult{{Step: steps[0], Result: rows}}}
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
	in, steps := planned(t, append(w, other))
	if steps[0].Skills[0] != "earthquake_feed" {
		t.Fatalf("%+v", steps)
	}
	in.Failed = &model.FailedStep{Step: steps[0], Trigger: "failed", Reason: "earthquake_feed is down", Suggestion: "Try another skill."}
	out := ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in)
	if !out.Feasible || planSkills(out) != "earthquake_archive rank" || out.Steps[0].Step != 1 {
		t.Errorf("%+v", out)
	}
}

func TestReplanGivesUp(t *testing.T) {
	in, steps := planned(t, quakeWorld(t))
	in.Failed = &model.FailedStep{Step: steps[0], Trigger: "failed", Reason: "earthquake_feed is down"}
	out := ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in)
	if out.Feasible || !strings.Contains(out.Reason, "earthquake_feed is down.") {
		t.Errorf("%+v", out)
	}
}

func TestPlanAfterViolations(t *testing.T) {
	in, _ := planned(t, quakeWorld(t))
	in.Violations = []string{"step 2: place is not in the output schema of rank"}
	out := ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in)
	if !out.Feasible || planSkills(out) != "earthquake_feed" {
		t.Errorf("%+v", out)
	}
	in.Skills = in.Skills[:1]
	if out = ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in); out.Feasible {
		t.Errorf("the same refused plan again: %+v", out)
	}
	in.Violations, in.MaxSteps = nil, 1
	if out = ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in); !out.Feasible {
		t.Error(out.Reason)
	}
}
