package agentic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// skillsOf has the core offer pure skills; those in down cannot be loaded.
func skillsOf(c *core, offered []string, down ...string) {
	var all []catalog.Manifest
	for _, name := range offered {
		all = append(all, catalog.Manifest{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Pure})
	}
	offers(c, all, down...)
}

// offers is skillsOf for skills of any effect.
func offers(c *core, all []catalog.Manifest, down ...string) {
	var found catalog.SkillFindResult
	for _, m := range all {
		found.Skills = append(found.Skills, catalog.SkillHit{Name: m.Name, Description: "The skill " + m.Name})
	}
	c.on("skill.find", done(found))
	c.on("skill.load", func(p placed) *intents.Answer {
		var args catalog.SkillLoad
		if err := json.Unmarshal(p.Args, &args); err != nil {
			c.t.Error(err)
		}
		var got catalog.SkillLoadResult
		for _, name := range append(args.Skills, args.Skill) {
			if i := slices.IndexFunc(all, func(m catalog.Manifest) bool { return m.Name == name }); i >= 0 && !slices.Contains(down, name) {
				got.Skills = append(got.Skills, all[i])
			}
		}
		switch {
		case len(got.Skills) == 0:
			return outcome(intents.ExecutorFailed, intents.Failed, false)(p)
		case args.Skill != "":
			return done(got.Skills[0])(p)
		}
		return done(got)(p)
	})
}

func planner(c *core, m model.Model) *Planner { return NewPlanner(c.config(natsserver.Planner, m)) }

// firstRequest is the first request of a manager to a planner.
func firstRequest(c *core) planRequest {
	return planRequest{Turn: c.turn(), Task: "How many outlets are there?", Epoch: 1, Revision: 1, FirstStep: 1}
}

func TestPlanner(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets", "weather"})
	answerTransitions(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanPlanning})
	m := wellDone()
	got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {})
	if got.Error != "" || got.Reason != "" || got.Plan == nil || len(got.Plan.Steps) != 1 {
		t.Fatalf("%+v", got)
	}
	if d := cmp.Diff([]string{"skill.find", "skill.load", "plan"}, types(c.allPlaced())); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
	signed := c.ofType("plan")[0]
	if signed.ID != got.Plan.PlanDigest {
		t.Error("the plan is not what the committed intent answered")
	}
	var args catalog.Plan
	if err := json.Unmarshal(signed.Args, &args); err != nil {
		t.Fatal(err)
	}
	want := catalog.Plan{PlanID: "plan_1", Epoch: 1, Revision: 1, Steps: []catalog.PlanStep{countStep}, Usage: []catalog.Usage{used(agents.Planner, 2)}}
	if d := cmp.Diff(want, args); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	for _, o := range c.allPlaced() {
		if o.Role != intents.RolePlanner || o.Place != (Place{}) || o.Grant != "first" {
			t.Errorf("%+v", o)
		}
	}
}

// TestPlannerLeavesOut: a skill whose server is down, and one that does not exist, are left out.
func TestPlannerLeavesOut(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets", "broken"}, "broken")
	m := says(map[string][]any{agents.Planner: {call("load_skill", loadSkillArgs{[]string{"broken", "invented", "outlets"}}), onePlan}})
	if got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {}); got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	var loaded loadSkillResult
	if err := json.Unmarshal([]byte(results(m.requests(agents.Planner)[1])[0]), &loaded); err != nil {
		t.Fatal(err)
	}
	if len(loaded.Skills) != 1 || loaded.Skills[0].Name != "outlets" {
		t.Errorf("loaded %+v", loaded.Skills)
	}
	if d := cmp.Diff([]string{"broken", "invented"}, loaded.Unavailable); d != "" {
		t.Errorf("unavailable (-want +got):\n%s", d)
	}
}

// TestPlannerNoSkills: the model is asked even without skills: it may answer by itself, or
// explain why nothing can be done.
func TestPlannerNoSkills(t *testing.T) {
	c := newCore(t)
	skillsOf(c, nil)
	m := says(map[string][]any{agents.Planner: {call("plan", planArgs{Infeasible: "nothing here knows outlets"})}})
	got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {})
	if d := cmp.Diff(planReply{Reason: "nothing here knows outlets", Usage: []catalog.Usage{used(agents.Planner, 1)}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := len(c.ofType("plan")); n != 0 {
		t.Errorf("%d plans signed", n)
	}
}

// TestPlannerAnswers: if no lookup is required, the plan is the answer.
func TestPlannerAnswers(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	m := says(map[string][]any{agents.Planner: {call("plan", planArgs{Answer: "Hello, Ana."})}})
	got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {})
	if got.Plan == nil || got.Answer != "Hello, Ana." {
		t.Fatalf("%+v", got)
	}
	var args catalog.Plan
	if err := json.Unmarshal(c.ofType("plan")[0].Args, &args); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(catalog.Plan{PlanID: "plan_1", Epoch: 1, Revision: 1, Steps: []catalog.PlanStep{}, Answer: "Hello, Ana.", Usage: []catalog.Usage{used(agents.Planner, 1)}}, args); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
}

// TestPlannerCorrects: the model receives the errors of a plan, and only a plan that can work is
// signed.
func TestPlannerCorrects(t *testing.T) {
	step := countStep
	step.Skills = []string{"weather"}
	wrong := call("plan", planArgs{Steps: []catalog.PlanStep{step}})
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	m := says(map[string][]any{agents.Planner: {pick, wrong, onePlan}})
	if got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {}); got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	all := m.requests(agents.Planner)
	if last := results(all[len(all)-1]); len(all) != 3 || !strings.Contains(last[len(last)-1], `there is no skill \"weather\" now`) {
		t.Errorf("the model was told %s", last)
	}
	if n := len(c.ofType("plan")); n != 1 {
		t.Errorf("%d plans were signed", n)
	}

	m = says(map[string][]any{agents.Planner: {wrong}})
	got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {})
	if got.Plan != nil || !strings.Contains(got.Reason, "there is no skill") || len(m.requests(agents.Planner)) != corrections+1 {
		t.Errorf("%+v after %d answers", got, len(m.requests(agents.Planner)))
	}
}

// TestPlannerRevision: a revision continues the numbering, and the model learns what failed and
// what stays.
func TestPlannerRevision(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	step := countStep
	step.Step, step.Inputs = 2, []int{1}
	m := says(map[string][]any{agents.Planner: {pick, call("plan", planArgs{Steps: []catalog.PlanStep{step}})}})
	req := firstRequest(c)
	req.Revision, req.Epoch, req.FirstStep = 2, 3, 2
	req.soFar = soFar{
		Completed: []stepResult{{Step: catalog.PlanStep{Step: 1, Task: "list", ReturnSpec: catalog.ReturnSpec{Shape: "array<{name: string}>"}}, Result: json.RawMessage(`["a"]`)}},
		Failed: &failedStep{
			Step: catalog.PlanStep{Step: 2, Task: "count"}, Trigger: "insufficient", Reason: "too many", Suggestion: "count them elsewhere",
			IntentHistory: []catalog.PastIntent{{Step: 2, Type: "skill.call", Status: "done", Args: json.RawMessage(`{}`)}},
		},
		Remaining: []catalog.PlanStep{{Step: 3, Task: "tell"}},
	}
	if got := planner(c, m).plan(t.Context(), req, func(progress) {}); got.Plan == nil {
		t.Fatalf("%+v", got)
	}
	first := m.requests(agents.Planner)[0]
	if told, _ := block[soFar](t, first, "Plan"); cmp.Diff(req.soFar, told) != "" {
		t.Errorf("the model was told (-want +got):\n%s", cmp.Diff(req.soFar, told))
	}
	if limits, _ := block[planLimits](t, first, "Limits"); limits != (planLimits{2, 9}) {
		t.Errorf("limits %+v", limits)
	}
	var args catalog.Plan
	if err := json.Unmarshal(c.ofType("plan")[0].Args, &args); err != nil || args.Revision != 2 || args.Epoch != 3 || args.Steps[0].Step != 2 {
		t.Errorf("%+v, error %v", args, err)
	}
}

// TestPlannerFails: the cause of a failure is reported in words, and no plan is signed twice.
func TestPlannerFails(t *testing.T) {
	broken := &model.Error{Reason: "rate limit"}
	for name, tt := range map[string]struct {
		replies []any
		on      string
		code    intents.Code
		want    string
	}{
		"no reply":         {[]any{broken}, "", "", "the model could not answer: rate limit"},
		"no second reply":  {[]any{pick, broken}, "", "", "the model could not answer: rate limit"},
		"an empty reply":   {[]any{""}, "", "", "the model could not answer: the model answered without text"},
		"the plan refused": {[]any{pick, onePlan}, "plan", intents.KeyRevoked, "not now (plan)"},
		"no skill found":   {nil, "skill.find", intents.KeyRevoked, "not now (skill.find)"},
	} {
		c := newCore(t)
		skillsOf(c, []string{"outlets"})
		if tt.on != "" {
			c.on(tt.on, refuse(tt.code, "not now"))
		}
		got := planner(c, says(map[string][]any{agents.Planner: tt.replies})).plan(t.Context(), firstRequest(c), func(progress) {})
		got.Usage = nil // checked by TestPlannerNoSkills
		if d := cmp.Diff(planReply{Error: tt.want}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestPlannerWaits: an intent of the planner that no model can send again is sent until it is accepted,
// for as long as planning may take. Then the user reads when to try again. A model is told of a
// refusal of its own calls.
func TestPlannerWaits(t *testing.T) {
	busy := refuse(intents.Overloaded, "too much work")
	for _, typ := range []string{"skill.find", "plan"} {
		for _, ends := range []bool{true, false} {
			c := newCore(t)
			skillsOf(c, []string{"outlets"})
			answerTransitions(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanPlanning})
			accept, refused := c.reply[typ], 0
			c.on(typ, func(p placed) *intents.Answer {
				if refused++; refused < 4 || !ends {
					return busy(p)
				}
				return accept(p)
			})
			cfg := c.config(natsserver.Planner, says(map[string][]any{agents.Planner: {composed}}))
			cfg.StepTime = time.Minute
			cfg.After = func(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }
			if !ends {
				cfg.StepTime = 100 * time.Millisecond
			}
			got := NewPlanner(cfg).plan(t.Context(), firstRequest(c), func(progress) {})
			if want := "too much work: try again in 1 s (" + typ + ")"; ends != (got.Plan != nil) || !ends && got.Error != want {
				t.Errorf("%s: %+v", typ, got)
			}
		}
	}
}
