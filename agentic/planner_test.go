package agentic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus/natsserver"
)

// skillsOf has the core offer skills; those in down cannot be loaded.
func skillsOf(c *core, offered []string, down ...string) {
	var found catalog.SkillFindResult
	for _, name := range offered {
		found.Skills = append(found.Skills, catalog.SkillHit{Name: name, Description: "The skill " + name})
	}
	c.on("skill.find", done(found))
	c.on("skill.load", func(p placed) *intents.Answer {
		var args catalog.SkillLoad
		if err := json.Unmarshal(p.Args, &args); err != nil {
			c.t.Error(err)
		}
		for _, name := range down {
			if args.Skill == name {
				return outcome(intents.ExecutorFailed, intents.Failed, false)(p)
			}
		}
		return done(catalog.Manifest{Name: args.Skill, InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Pure})(p)
	})
}

func planner(c *core, m model.Model) *Planner { return NewPlanner(c.config(natsserver.Planner, m)) }

// asked is what a manager asks of a planner first.
func asked(c *core) planRequest {
	return planRequest{Turn: c.turn(), Task: "How many outlets are there?", Epoch: 1, Revision: 1, FirstStep: 1}
}

// seen are the names of the skills that the model was shown for its plan.
func seen(t *testing.T, m *script) []string {
	t.Helper()
	in := m.inputs(model.WritePlan)
	if len(in) == 0 {
		t.Fatal("no plan was asked for")
	}
	var v model.PlanInput
	if err := json.Unmarshal(in[0], &v); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range v.Skills {
		names = append(names, s.Name)
	}
	return names
}

func TestPlanner(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets", "weather"})
	folding(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanPlanning})
	m := says(map[model.Purpose][]any{model.SelectSkills: {pick}, model.WritePlan: {onePlan}})
	got := planner(c, m).plan(t.Context(), asked(c))
	if got.Error != "" || got.Reason != "" || got.Plan == nil || len(got.Plan.Steps) != 1 {
		t.Fatalf("%+v", got)
	}
	if d := cmp.Diff([]string{"skill.find", "skill.load", "plan"}, types(c.taken())); d != "" {
		t.Errorf("orders (-want +got):\n%s", d)
	}
	sealed := c.of("plan")[0]
	if sealed.ID != got.Plan.PlanDigest {
		t.Error("the plan is not what the committed order answered")
	}
	var args catalog.Plan
	if err := json.Unmarshal(sealed.Args, &args); err != nil {
		t.Fatal(err)
	}
	want := catalog.Plan{PlanID: "plan_1", Epoch: 1, Revision: 1, Steps: listed(onePlan.Steps)}
	if d := cmp.Diff(want, args); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	for _, o := range c.taken() {
		if o.Role != intents.RolePlanner || o.Place != (Place{}) || o.Grant != "first" {
			t.Errorf("%+v", o)
		}
	}
}

// TestPlannerLeavesOut: a skill whose server is down, one that was not offered,
// and what is more than a planner loads.
func TestPlannerLeavesOut(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets", "broken", "c", "d", "e", "f", "g"}, "broken")
	m := says(map[model.Purpose][]any{model.SelectSkills: {model.SelectOutput{Skills: []string{"broken", "invented", "outlets"}}}, model.WritePlan: {onePlan}})
	if got := planner(c, m).plan(t.Context(), asked(c)); got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	if d := cmp.Diff([]string{"outlets"}, seen(t, m)); d != "" {
		t.Errorf("skills of the plan (-want +got):\n%s", d)
	}
	if n := len(c.of("skill.load")); n != 2 {
		t.Errorf("%d skills were asked for", n)
	}
}

// TestPlannerNoSkills: the model is still asked, since a replan may need none.
func TestPlannerNoSkills(t *testing.T) {
	c := newCore(t)
	skillsOf(c, nil)
	m := says(map[model.Purpose][]any{model.WritePlan: {model.PlanOutput{Reason: "nothing here knows outlets", Steps: []model.Step{}}}})
	got := planner(c, m).plan(t.Context(), asked(c))
	if d := cmp.Diff(planReply{Reason: "nothing here knows outlets"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := len(c.of("plan")); n != 0 || len(m.inputs(model.SelectSkills)) != 0 {
		t.Errorf("%d plans sealed, %d selections thought", n, len(m.inputs(model.SelectSkills)))
	}
}

// TestPlannerCorrects: the model is told what is wrong, and only a plan that can
// work is sealed.
func TestPlannerCorrects(t *testing.T) {
	step := countStep
	step.Skills = []string{"weather"}
	wrong := model.PlanOutput{Feasible: true, Reason: "it can", Steps: []model.Step{step}}
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	m := says(map[model.Purpose][]any{model.SelectSkills: {pick}, model.WritePlan: {wrong, onePlan}})
	if got := planner(c, m).plan(t.Context(), asked(c)); got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	in := m.inputs(model.WritePlan)
	if len(in) != 2 || !strings.Contains(string(in[1]), `skill \"weather\" was not loaded`) {
		t.Errorf("asked with %s", in)
	}
	if n := len(c.of("plan")); n != 1 {
		t.Errorf("%d plans were sealed", n)
	}

	m = says(map[model.Purpose][]any{model.SelectSkills: {pick}, model.WritePlan: {wrong}})
	got := planner(c, m).plan(t.Context(), asked(c))
	if got.Plan != nil || !strings.Contains(got.Reason, "was not loaded") || len(m.inputs(model.WritePlan)) != planAttempts {
		t.Errorf("%+v after %d answers", got, len(m.inputs(model.WritePlan)))
	}
}

// TestPlannerRevision: a revision is numbered on, and the model is told what
// failed and what stays.
func TestPlannerRevision(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	step := countStep
	step.Step, step.InputFromStep = 2, 1
	next := model.PlanOutput{Feasible: true, Reason: "it can", Steps: []model.Step{step}}
	m := says(map[model.Purpose][]any{model.SelectSkills: {pick}, model.WritePlan: {next}})
	req := asked(c)
	req.Revision, req.Epoch, req.FirstStep = 2, 3, 2
	req.Completed = []model.CompletedStep{{Step: catalog.PlanStep{Step: 1, Task: "list", ReturnSpec: catalog.ReturnSpec{Shape: "array<{name: string}>"}}, Result: json.RawMessage(`["a"]`)}}
	req.Failed = &model.FailedStep{
		Step: catalog.PlanStep{Step: 2, Task: "count"}, Trigger: "insufficient", Reason: "too many", Suggestion: "count them elsewhere",
		Facts: json.RawMessage(`[{"step":2,"type":"skill.call","status":"done"}]`),
	}
	req.Remaining = []catalog.PlanStep{{Step: 3, Task: "tell"}}
	if got := planner(c, m).plan(t.Context(), req); got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	var in model.PlanInput
	if err := json.Unmarshal(m.inputs(model.WritePlan)[0], &in); err != nil {
		t.Fatal(err)
	}
	if in.FirstStep != 2 || in.MaxSteps != 9 || len(in.Completed) != 1 || string(in.Completed[0].Result) != `["a"]` || in.Failed == nil ||
		in.Failed.Trigger != "insufficient" || in.Failed.Suggestion != "count them elsewhere" || !strings.Contains(string(in.Failed.Facts), "skill.call") || len(in.Remaining) != 1 {
		t.Errorf("the model was told %+v", in)
	}
	var args catalog.Plan
	if err := json.Unmarshal(c.of("plan")[0].Args, &args); err != nil || args.Revision != 2 || args.Epoch != 3 || args.Steps[0].Step != 2 {
		t.Errorf("%+v, error %v", args, err)
	}
}

// TestPlannerFails: what stops it is told in words, and no plan is sealed twice.
func TestPlannerFails(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	broken := &model.Error{Reason: "rate limit"}
	for name, tt := range map[string]struct {
		model *script
		on    string
		want  string
	}{
		"no selection":     {says(map[model.Purpose][]any{model.SelectSkills: {broken}}), "", "the model could not answer: rate limit"},
		"no plan":          {says(map[model.Purpose][]any{model.SelectSkills: {pick}, model.WritePlan: {broken}}), "", "the model could not answer: rate limit"},
		"the plan refused": {says(map[model.Purpose][]any{model.SelectSkills: {pick}, model.WritePlan: {onePlan}}), "plan", "not now (plan)"},
		"no skill found":   {says(nil), "skill.find", "not now (skill.find)"},
	} {
		if tt.on != "" {
			c.on(tt.on, refuse(intents.MalformedArgs, "not now"))
		}
		got := planner(c, tt.model).plan(t.Context(), asked(c))
		if d := cmp.Diff(planReply{Error: tt.want}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if tt.on != "" {
			skillsOf(c, []string{"outlets"})
			c.on("plan", done(struct{}{}))
		}
	}
}
