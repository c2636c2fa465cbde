package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// planInput asks for a plan of at most MaxSteps steps numbered from FirstStep or,
// after a failure, for the steps that replace the failed and remaining ones.
type planInput struct {
	Task       string             `json:"-"`
	Skills     []skill            `json:"-"` // that were loaded
	FirstStep  int                `json:"first_step"`
	MaxSteps   int                `json:"max_steps"`
	Completed  []json.RawMessage  `json:"completed"`
	Failed     *failedStep        `json:"failed"`
	Remaining  []catalog.PlanStep `json:"remaining"`
	Violations []string           `json:"-"` // what is wrong with each plan before this one
}

type failedStep struct {
	Step   catalog.PlanStep `json:"step"`
	Reason string           `json:"reason"`
}

// planOutput are the arguments of plan, of which one is there.
type planOutput struct {
	Steps      []catalog.PlanStep `json:"steps,omitempty"`
	Answer     string             `json:"answer,omitempty"`
	Infeasible string             `json:"infeasible,omitempty"`
}

// planTask answers as the planner: it loads what fits, plans, and corrects once a
// plan that cannot work.
func planTask(c *conversation) action {
	in := planInput{Task: c.task}
	var candidates []skill
	c.block("[Skills]", &candidates)
	c.block("[Limits]", &in)
	if c.blocks["[Plan]"] != "" {
		c.block("[Plan]", &in)
	}
	for _, x := range c.calls {
		in.Skills = append(in.Skills, x.Skills...)
		if x.Name == "plan" {
			in.Violations = append(in.Violations, x.wrong())
		}
	}
	for _, list := range [][]skill{candidates, in.Skills} {
		for i := range list {
			list[i].Name = toolOf(list[i].Name)
		}
	}
	names := selectSkills(c.task, candidates)
	out := planOutput{Answer: smallTalk(c.task, candidates)}
	switch {
	case out.Answer != "":
	case len(in.Violations) > 1:
		out = infeasible("The plan cannot work: " + in.Violations[1])
	case len(c.calls) == 0 && len(names) > 0 && c.offers("load_skill"):
		return action{tool: "load_skill", args: map[string][]string{"skills": names}}
	default:
		out = writePlan(in)
	}
	return action{tool: "plan", args: out}
}

// toolOf is the name of a skill's tool, whose words people use and which will do: that of
// the server says nothing about a task.
func toolOf(id string) string { return id[strings.IndexByte(id, '.')+1:] }

// selectSkills takes the candidates that share words with the task, those that
// share most first, six at most. What only puts rows in order is no reason to begin.
func selectSkills(request string, candidates []skill) []string {
	task := vocabulary(request)
	ordered := slices.ContainsFunc(words(request), func(w word) bool { return extreme(w) || sorting[w.lower] || strings.HasSuffix(w.lower, "est") })
	score := map[string]int{}
	var found []string
	source := false
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
		if orders := about["rank"] && about["row"]; score[c.Name] > 0 || orders && ordered {
			source = source || !orders
			found = append(found, c.Name)
		}
	}
	if !source {
		return nil
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(score[b], score[a]) })
	return found[:min(len(found), 6)]
}

// harmless are the skills that may be called for a task: those that only read,
// and those that the words of the user name. Shared words alone are no order to
// change the world: "show the last commit" must not commit.
func harmless(skills []skill, task string) []skill {
	return slices.DeleteFunc(slices.Clone(skills), func(s skill) bool { return s.Effect != "pure" && !named(s.Name, task) })
}

// writePlan plans the one way that explains the whole task, or says why there is none.
func writePlan(in planInput) planOutput {
	skills := in.Skills
	if f := in.Failed; f != nil {
		s := f.Step
		switch byScript := strings.HasPrefix(requestOf(s.Task), rankTask) && s.InputFromStep > 0 && len(s.Skills) > 0; {
		case byScript: // rows can be ranked without the skill
			s.Task, s.Skills, s.Step = requestOf(s.Task), []string{}, in.FirstStep
			return planOutput{Steps: append([]catalog.PlanStep{s}, in.Remaining...)}
		case len(in.Completed) > 0:
			return infeasible(f.Reason)
		}
		skills = slices.DeleteFunc(slices.Clone(skills), func(k skill) bool {
			return slices.ContainsFunc(s.Skills, func(id string) bool { return toolOf(id) == k.Name })
		})
	}
	best := propose(harmless(skills, in.Task), in.Task)
	switch {
	case len(words(in.Task)) > maxWords:
		return infeasible(fmt.Sprintf("The offline model reads requests of at most %d words.", maxWords))
	case best.problem != "" && in.Failed != nil:
		return infeasible(in.Failed.Reason)
	case best.problem != "":
		return infeasible(best.problem + "\n" + best.advice())
	}
	ranked := ranking(best, skills)
	steps := append(slices.Clone(best.steps), ranked...)
	if len(ranked) > 0 && (len(in.Violations) > 0 || len(steps) > in.MaxSteps) {
		steps, in.Violations = best.steps, nil
	}
	switch {
	case len(in.Violations) > 0:
		return infeasible("The plan cannot work: " + in.Violations[0])
	case len(steps) > in.MaxSteps:
		return infeasible("It takes more steps than there may be.")
	}
	for i := range steps {
		steps[i].Step = in.FirstStep + i
		if i > 0 {
			steps[i].InputFromStep = in.FirstStep + i - 1
		}
	}
	return planOutput{Steps: steps}
}

func infeasible(reason string) planOutput {
	return planOutput{Infeasible: sentence(reason)}
}

// propose finds the best reading: that of one skill, or of two of which the first
// finds what the second asks for.
func propose(skills []skill, task string) *reading {
	skills = slices.DeleteFunc(slices.Clone(skills), isRanker)
	var all []*reading
	for _, s := range skills {
		all = append(all, direct(s, task))
		for _, first := range skills {
			all = append(all, chain(first, s, task)...)
		}
	}
	best := &reading{t: &table{single: true}, problem: "No available skill can do this.", score: -1}
	for _, p := range all {
		can, could := p.problem == "", best.problem == ""
		if can && !could || can == could && p.score > best.score {
			best = p
		}
	}
	return best
}

// direct has one skill answer the task.
func direct(s skill, task string) *reading {
	ws := words(task)
	args := fill(s, ws, nil)
	t := tableOf(s)
	if named(s.Name, task) {
		maps.Copy(t.speaks, vocabulary(s.Name, s.Description))
		t.speaks[stem(s.Name)] = true
	}
	r := read(t, ws, args.used)
	r.problem = cmp.Or(args.problem, r.problem)
	for i, w := range ws {
		if w.key != "" && !args.used[i] {
			r.fail("%s has no argument %q that %q could be.", s.Name, w.key, w.text)
		}
	}
	r.steps = []catalog.PlanStep{step(args.explicit(task, ws), s, r)}
	return r
}

// chain splits a task such as "the orders of the outlet Mitte": the first skill
// finds the outlet, the second is called with its outlet_id. Most tasks are no such.
func chain(first, second skill, task string) []*reading {
	ws := words(task)
	a, b := tableOf(first), tableOf(second)
	cut := slices.IndexFunc(ws, func(w word) bool { return a.nouns[w.stem] && !b.nouns[w.stem] })
	if cut < 1 || !slices.ContainsFunc(ws[:cut], func(w word) bool { return b.nouns[w.stem] }) {
		return nil
	}
	args := fill(second, ws[:cut], nil)
	if len(args.missing) != 1 || a.column(args.missing[0]) == nil || fill(first, ws[cut:], nil).problem != "" {
		return nil
	}
	found := read(a, ws[cut:], nil)
	r := read(b, ws[:cut], args.used)
	if found.columns = []*column{a.column(args.missing[0])}; found.problem != "" {
		r.fail("%s", found.problem)
	}
	r.score += found.score - 1
	r.steps = []catalog.PlanStep{step("Find the "+task[ws[cut].begin:], first, found), step(task[:ws[cut].begin]+ws[cut].text+" found", second, r)}
	return []*reading{r}
}

// step calls a skill. Its task begins with the name of the skill, and goes on in
// the words of the request.
func step(task string, s skill, r *reading) catalog.PlanStep {
	return catalog.PlanStep{
		Task: s.Name + ": " + strings.TrimSpace(task), Skills: []string{s.Name},
		ReturnSpec: catalog.ReturnSpec{Shape: r.shape(r.t), Reason: "It is what the task asks for."},
	}
}

// requestOf is the task of a step without the name of its skill.
func requestOf(task string) string {
	if skill, request, ok := strings.Cut(task, ": "); ok && !strings.Contains(skill, " ") {
		return request
	}
	return task
}

// rankTask begins the task of a step that puts the rows of the one before in order.
const rankTask = "Rank the rows by "

// isRanker reports whether a skill puts the rows that it is given in order by a
// member: it says that it ranks or sorts, and requires an array of objects and a text.
func isRanker(s skill) bool {
	rows, by, _ := rankArgs(s)
	about := vocabulary(s.Name, s.Description)
	return rows != "" && by != "" && (about["rank"] || about["sort"])
}

func rankArgs(s skill) (rows, by, descending string) {
	in := readSchema(s.InputSchema)
	for name, p := range in.Properties {
		required := slices.Contains(in.Required, name)
		switch p := p.resolve(in); {
		case required && p.kind() == "array" && p.Items.resolve(in).kind() == "object":
			rows = name
		case required && p.kind() == "string":
			by = name
		case p.kind() == "boolean" && stem(name) == "descending":
			descending = name
		case required:
			return "", "", ""
		}
	}
	return rows, by, descending
}

// ranking is the step that has a skill rank the first records of an order.
func ranking(p *reading, skills []skill) []catalog.PlanStep {
	i := slices.IndexFunc(skills, func(s skill) bool { return s.Effect == "pure" && isRanker(s) })
	if i < 0 || p.extreme < 0 || p.Limit < 2 || p.Fold != "" {
		return nil
	}
	end := map[bool]string{false: "highest", true: "lowest"}[p.Asc]
	given := &reading{t: tableOf(skills[i])}
	given.columns = slices.Concat(given.t.columns, p.columns)
	return []catalog.PlanStep{step(fmt.Sprintf("%s%s, %s first", rankTask, p.By.Name, end), skills[i], given)}
}

// advice says what the offline model can do, and what to type.
func (p *reading) advice() string {
	if p.t.single {
		return ability + " A skill that changes something must be named. See what there is with writ skill list."
	}
	plural, value := spaced(p.t.plural), p.t.example()
	tries := []string{"List the " + plural, "How many " + plural + " are there?"}
	if p.t.first((*column).numeric) != nil {
		tries = []string{tries[1], "The 3 " + plural + " with the highest " + value, "The average " + value + " of the " + plural}
	}
	return ability + " Try " + quoted(tries)
}
