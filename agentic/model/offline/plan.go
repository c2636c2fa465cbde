package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// planInput asks for a plan of at most MaxSteps steps numbered from FirstStep.
type planInput struct {
	FirstStep int `json:"first_step"`
	MaxSteps  int `json:"max_steps"`
	Failed    *struct {
		Reason string `json:"reason"`
	} `json:"failed"` // the failed step of a plan before this one
}

// planOutput are the arguments of plan, of which exactly one is set.
type planOutput struct {
	Steps      []catalog.PlanStep `json:"steps,omitempty"`
	Infeasible string             `json:"infeasible,omitempty"`
}

// planTask answers as the planner: it loads matching skills, and plans once.
func planTask(c *conversation) action {
	var in planInput
	var candidates, loaded []skill
	c.block("[Skills]", &candidates)
	candidates = append(c.skills(), candidates...) // tools, and other skills
	c.block("[Limits]", &in)
	if c.blocks["[Plan]"] != "" {
		c.block("[Plan]", &in)
	}
	failure := ""
	if in.Failed != nil {
		failure = cmp.Or(in.Failed.Reason, "A step failed.")
	}
	for _, x := range c.calls {
		loaded = append(loaded, x.Skills...)
		if x.Name == "plan" {
			failure = "The plan cannot work: " + x.wrong()
		}
	}
	for _, list := range [][]skill{candidates, loaded} {
		for i := range list { // people use the words of a tool, not those of its server
			list[i].Name = list[i].Name[strings.IndexByte(list[i].Name, '.')+1:]
		}
	}
	switch names := selectSkills(c.task, candidates); {
	case failure != "":
		return action{tool: "plan", args: planOutput{Infeasible: apology(c.task, failure)}}
	case len(c.calls) == 0 && len(names) > 0 && c.offers("load_skill"):
		return action{tool: "load_skill", args: map[string][]string{"skills": names}}
	}
	p := writePlan(c.task, loaded, in)
	if p.Infeasible != "" { // the user reads it as it is
		p.Infeasible = apology(c.task, p.Infeasible)
	}
	return action{tool: "plan", args: p}
}

// selectSkills returns the candidates that share words with the task, best matches first, at most
// six, and the ranker last.
func selectSkills(request string, candidates []skill) []string {
	task, score := vocabulary(request), map[string]int{}
	var found, rankers []string
	for _, c := range candidates {
		name, about := vocabulary(c.Name), vocabulary(c.Description)
		for w := range task {
			if about[w] {
				score[c.Name]++
			}
			if name[w] {
				score[c.Name] += 3
			}
		}
		if c.Name == ranker {
			rankers = append(rankers, c.Name)
		} else if score[c.Name] > 0 {
			found = append(found, c.Name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(score[b], score[a]) })
	return append(found[:min(len(found), 6)], rankers...)
}

// harmless returns the skills that may be called for a task: those that only read, and those that
// the user names. Shared words alone do not justify an effect: "show the last commit" must not
// commit.
func harmless(skills []skill, task string) []skill {
	return slices.DeleteFunc(slices.Clone(skills), func(s skill) bool { return s.Changes && !named(s.Name, task) })
}

// writePlan plans with the one skill that explains the whole task, or explains why there is none.
func writePlan(task string, skills []skill, in planInput) planOutput {
	best := &reading{t: &table{}, problem: "No available skill can do this.", score: -1}
	for _, s := range harmless(skills, task) {
		if r := readFor(s, task, nil); s.Name != ranker && (r.problem == "" && best.problem != "" || (r.problem == "") == (best.problem == "") && r.score > best.score) {
			best = r
		}
	}
	switch {
	case len(words(task)) > maxWords:
		return planOutput{Infeasible: fmt.Sprintf("The offline model reads requests of at most %d words.", maxWords)}
	case best.problem != "":
		return planOutput{Infeasible: best.problem + " " + best.advice()}
	}
	steps := []catalog.PlanStep{step(in.FirstStep, best.t.skill, task, best.shape())}
	i := slices.IndexFunc(skills, func(s skill) bool { return s.Name == ranker && !s.Changes })
	if i >= 0 && best.extreme && best.Limit > 1 && in.MaxSteps > 1 {
		end := map[bool]string{false: "highest", true: "lowest"}[best.Asc]
		ranked := readFor(skills[i], "", nil)
		ranked.columns = slices.Concat(ranked.t.columns, best.columns)
		ranked.By, ranked.extreme = best.By, true
		second := step(in.FirstStep+1, ranker, fmt.Sprintf("Rank the rows by %s, %s first", best.By.Name, end), ranked.shape())
		second.Inputs = []int{in.FirstStep}
		steps = append(steps, second)
	}
	return planOutput{Steps: steps}
}

// readFor reads a task as a request to one skill, whose result the step must return in a shape.
func readFor(s skill, task string, returned json.RawMessage) *reading {
	t := tableOf(s)
	if t.named = named(s.Name, task); t.named {
		for w := range vocabulary(s.Name, s.Description) {
			t.speaks[w] = true
		}
		t.speaks[stem(s.Name)] = true
	}
	ws := words(task)
	r := read(t.addShape(returned), ws)
	input, problem := arguments(s, ws)
	r.input, r.problem = input, cmp.Or(problem, r.problem)
	return r
}

// step calls a skill. Its task begins with the name of the skill, followed by the words of the
// request.
func step(n int, skill, task, shape string) catalog.PlanStep {
	return catalog.PlanStep{
		Step: n, Task: skill + ": " + strings.TrimSpace(task), Skills: []string{skill},
		ReturnSpec: catalog.ReturnSpec{Shape: shape, Reason: "It is what the task asks for."},
	}
}

// requestOf returns the task of a step without the name of its skill.
func requestOf(task string) string {
	if skill, request, ok := strings.Cut(task, ": "); ok && !strings.Contains(skill, " ") {
		return request
	}
	return task
}

// ranker is a skill that adds to rows their rank in an order: the demo has one, with the
// arguments rows, by and descending.
const ranker = "rank"

// ability says what can be asked, and how to ask anything else.
const ability = "This is the offline model, a demonstration: it lists, counts, filters and sorts what one skill returns, asked in the words of its schemas. For other requests set a language model: writ up --model openai:NAME."

// advice says what to type.
func (r *reading) advice() string {
	if len(r.t.columns) == 0 || r.t.single {
		return "A skill that changes something must be named, and an argument is written name=value. See what there is with writ skill list. " + ability
	}
	plural := spaced(r.t.plural)
	tries := []string{"How many " + plural + " are there?", "List the " + plural}
	if r.t.first((*column).numeric) != nil {
		tries[1] = "The 3 " + plural + " with the highest " + r.t.example()
	}
	return "Try " + quoted(tries) + ". " + ability
}
