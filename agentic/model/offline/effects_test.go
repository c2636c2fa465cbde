package offline

import (
	"encoding/json"
	"slices"
	"testing"

	"aob.dev/writ/agentic/model"
)

// The tools of a server for git, of which two act.
func gitSkills() []model.Skill {
	out := json.RawMessage(`{"type":"object","properties":{"commits":{"type":"array","items":{"type":"object","properties":{"commit":{"type":"string"},"date":{"type":"string"}},"required":["commit","date"]}}},"required":["commits"]}`)
	in := json.RawMessage(`{"type":"object","properties":{}}`)
	return []model.Skill{
		{Name: "git_commit", Description: "Records the last staged changes as a commit of the repository.", InputSchema: in, OutputSchema: out, Effect: "once"},
		{Name: "git_log", Description: "Shows the commits.", InputSchema: in, OutputSchema: out, Effect: "pure"},
		{Name: "git_add", Description: "Stages commits.", InputSchema: in, OutputSchema: out, Effect: "idempotent"},
	}
}

// TestOfflineDoesNotAct: shared words are no order to change the world.
func TestOfflineDoesNotAct(t *testing.T) {
	skills := gitSkills()
	for _, task := range []string{"Show the last commit of the repository", "List all commits and add their dates", "git: record"} {
		plan := writePlan(model.PlanInput{Task: task, Skills: skills, FirstStep: 1, MaxSteps: 5})
		for _, s := range plan.Steps {
			if slices.Contains(s.Skills, "git_commit") || slices.Contains(s.Skills, "git_add") {
				t.Errorf("%s: planned %v", task, s.Skills)
			}
		}
		for _, s := range []model.Skill{skills[0], skills[2]} {
			if out := chooseAction(model.ActionInput{Task: task, UserTask: task, Skills: []model.Skill{s}, Schema: s.OutputSchema}); out.Action != model.ActInsufficient {
				t.Errorf("%s: %s %s", task, out.Action, out.Skill)
			}
			failed := []model.CallResult{{Skill: "git_log", Error: "down"}}
			if out := chooseAction(model.ActionInput{Task: task, UserTask: task, Skills: []model.Skill{s}, Schema: s.OutputSchema, Calls: failed}); out.Action != model.ActInsufficient {
				t.Errorf("%s, after a failure: %s %s", task, out.Action, out.Skill)
			}
		}
		if out := chooseAction(model.ActionInput{Task: task, UserTask: task, Skills: skills, Schema: skills[0].OutputSchema}); out.Skill != "git_log" {
			t.Errorf("%s: %s %s", task, out.Action, out.Skill)
		}
	}
	plan := writePlan(model.PlanInput{Task: "git commit what is staged", Skills: skills, FirstStep: 1, MaxSteps: 5})
	if len(plan.Steps) != 1 || plan.Steps[0].Skills[0] != "git_commit" {
		t.Errorf("named, and not planned: %s %+v", plan.Reason, plan.Steps)
	}
	for _, task := range []string{"Call git_commit", "please GIT commit what is staged"} {
		if out := chooseAction(model.ActionInput{Task: task, UserTask: task, Skills: skills[:1], Schema: skills[0].OutputSchema}); out.Skill != "git_commit" {
			t.Errorf("%s: %s %s", task, out.Action, out.Reason)
		}
	}
}
