package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
)

// selectSkills takes the candidates that share words with the task, those that
// share most first. What only puts rows in order is no reason to begin.
func selectSkills(in model.SelectInput) model.SelectOutput {
	task := vocabulary(in.Task)
	ordered := slices.ContainsFunc(words(in.Task), func(w word) bool { return extreme(w) || sorting[w.lower] || strings.HasSuffix(w.lower, "est") })
	score := map[string]int{}
	found := []string{}
	source := false
	for _, c := range in.Candidates {
		about := vocabulary(c.Description)
		n, orders := shared(task, c.Name, c.Description), about["rank"] && about["row"]
		if n == 0 && !(orders && ordered) {
			continue
		}
		source = source || !orders
		score[c.Name] = n
		found = append(found, c.Name)
	}
	if !source {
		return model.SelectOutput{Skills: []string{}}
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(score[b], score[a]) })
	return model.SelectOutput{Skills: found[:min(len(found), 6)]}
}

// shared counts the words that a task shares with a skill, those of its name thrice.
func shared(task map[string]bool, name, description string) int {
	n := 0
	for w := range vocabulary(name) {
		if task[w] {
			n += 3
		}
	}
	for w := range vocabulary(description) {
		if task[w] {
			n++
		}
	}
	return n
}

// harmless are the skills that may be called for a task: those that only read,
// and those that the words of the user name. Shared words alone are no order to
// change the world: "show the last commit" must not commit.
func harmless(skills []model.Skill, task string) []model.Skill {
	return slices.DeleteFunc(slices.Clone(skills), func(s model.Skill) bool { return s.Effect != "pure" && !named(s.Name, task) })
}

// proposal is one way to do a task: steps without numbers, each but the first
// after the one before it.
type proposal struct {
	steps   []model.Step
	reading *reading // of the step that answers
	problem string
	score   int
}

// writePlan plans the one way that explains the whole task, or says why there is none.
func writePlan(in model.PlanInput) model.PlanOutput {
	skills := in.Skills
	if f := in.Failed; f != nil {
		if out, ok := withoutRanking(in); ok || len(in.Completed) > 0 {
			return out
		}
		skills = slices.DeleteFunc(slices.Clone(skills), func(s model.Skill) bool { return slices.Contains(f.Step.Skills, s.Name) })
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
	return model.PlanOutput{Feasible: true, Reason: "The words of the task and the schemas of the skills say the same.", Steps: steps}
}

func infeasible(reason string) model.PlanOutput {
	return model.PlanOutput{Reason: sentence(reason), Steps: []model.Step{}}
}

// propose finds the best proposal: that of one skill, or of two of which the
// first finds what the second asks for.
func propose(skills []model.Skill, task string) proposal {
	best := proposal{problem: "No available skill can do this.", score: -1}
	better := func(p proposal) {
		can, could := p.problem == "", best.problem == ""
		if can && !could || can == could && p.score > best.score {
			best = p
		}
	}
	for _, s := range skills {
		if isRanker(s) {
			continue
		}
		better(direct(s, task))
		for _, first := range skills {
			if first.Name != s.Name && !isRanker(first) {
				if p, ok := chain(first, s, task); ok {
					better(p)
				}
			}
		}
	}
	return best
}

// direct has one skill answer the task.
func direct(s model.Skill, task string) proposal {
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
	return proposal{steps: []model.Step{step(args.explicit(task, ws), s, r)}, reading: r, problem: r.problem, score: r.score}
}

// chain splits a task such as "the orders of the outlet Mitte": the first skill
// finds the outlet, the second is called with its outlet_id.
func chain(first, second model.Skill, task string) (proposal, bool) {
	ws := words(task)
	a, b := tableOf(first), tableOf(second)
	cut := slices.IndexFunc(ws, func(w word) bool { return a.nouns[w.stem] && !b.nouns[w.stem] })
	if cut < 1 || !slices.ContainsFunc(ws[:cut], func(w word) bool { return b.nouns[w.stem] }) {
		return proposal{}, false
	}
	args := fill(second, ws[:cut], nil)
	if len(args.missing) != 1 || a.column(args.missing[0]) == nil || fill(first, ws[cut:], nil).problem != "" {
		return proposal{}, false
	}
	found := read(a, ws[cut:], nil)
	r := read(b, ws[:cut], args.used)
	if found.columns = []column{*a.column(args.missing[0])}; found.problem != "" {
		r.fail("%s", found.problem)
	}
	one := step("Find the "+task[ws[cut].begin:], first, found)
	two := step(task[:ws[cut].begin]+ws[cut].text+" found", second, r)
	return proposal{steps: []model.Step{one, two}, reading: r, problem: r.problem, score: r.score + found.score - 1}, true
}

// step calls a skill. Its task begins with the name of the skill, and goes on in
// the words of the request.
func step(task string, s model.Skill, r *reading) model.Step {
	return model.Step{
		Task: s.Name + ": " + strings.TrimSpace(task), Skills: []string{s.Name},
		ReturnSpec: model.ReturnSpec{Shape: r.shape(r.t), Reason: "It is what the task asks for."},
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
func isRanker(s model.Skill) bool {
	rows, by, _ := rankArgs(s)
	about := vocabulary(s.Name, s.Description)
	return rows != "" && by != "" && (about["rank"] || about["sort"])
}

func rankArgs(s model.Skill) (rows, by, descending string) {
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
func ranking(p proposal, skills []model.Skill) []model.Step {
	i := slices.IndexFunc(skills, func(s model.Skill) bool { return s.Effect == "pure" && isRanker(s) })
	if r := p.reading; i < 0 || r.extreme < 0 || r.Limit < 2 || r.Fold != "" {
		return nil
	}
	given := tableOf(skills[i])
	columns := slices.Concat(given.columns, p.reading.columns)
	end := "highest"
	if p.reading.Asc {
		end = "lowest"
	}
	s := step(fmt.Sprintf("%s%s, %s first", rankTask, p.reading.By.Name, end), skills[i], &reading{t: given, query: query{columns: columns}})
	return []model.Step{s}
}

// withoutRanking replaces a step that ranked rows with a script that does.
func withoutRanking(in model.PlanInput) (model.PlanOutput, bool) {
	f := in.Failed.Step
	if !strings.HasPrefix(requestOf(f.Task), rankTask) || f.InputFromStep == 0 || len(f.Skills) == 0 {
		return infeasible(in.Failed.Reason), false
	}
	f.Task, f.Skills = requestOf(f.Task), []string{}
	f.Step = in.FirstStep
	return model.PlanOutput{Feasible: true, Reason: "The rows can be ranked without the skill.", Steps: append([]model.Step{f}, in.Remaining...)}, true
}

// advice says what the offline model can do, and what to type.
func (p proposal) advice() string {
	const can = "This is the offline model: it lists, counts, adds up, averages, filters and sorts what skills return, asked in their own words."
	if p.reading == nil || p.reading.t.single {
		return can + " A skill that changes something must be named. See what there is with writ skill list."
	}
	t := p.reading.t
	plural := spaced(t.plural)
	tries := []string{"List the " + plural, "How many " + plural + " are there?"}
	if t.first((*column).numeric) != nil {
		tries = []string{tries[1], "The 3 " + plural + " with the highest " + t.example(), "The average " + t.example() + " of the " + plural}
	}
	return can + " Try " + quoted(tries)
}
