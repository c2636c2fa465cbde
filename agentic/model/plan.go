package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// writePlan chains skills by their schemas: one that has the records that the
// task is about, before it one that supplies an input it requires, after it one
// that arranges rows where the task needs that. A replan leaves out the skills
// of the step that failed and takes over completed steps that it would repeat.
func writePlan(in PlanInput) PlanOutput {
	p := newPlanner(in)
	best, reason := p.best()
	if best == nil {
		return infeasible(p.because(reason))
	}
	drafts := p.arranged(best)
	if len(in.Violations) > 0 {
		if len(drafts) == len(best.drafts) {
			return infeasible("The plan was refused and there is no other: " + sentence(in.Violations[0]))
		}
		drafts = best.drafts
	}
	steps := p.number(drafts)
	if len(steps) == 0 {
		return infeasible(p.because("Nothing is left to try."))
	}
	if in.MaxSteps > 0 && len(steps) > in.MaxSteps {
		return infeasible(fmt.Sprintf("The task needs %d steps, and no more than %d are left.", len(steps), in.MaxSteps))
	}
	return PlanOutput{Feasible: true, Reason: best.reason(), Steps: steps}
}

func infeasible(reason string) PlanOutput {
	return PlanOutput{Reason: reason, Steps: []Step{}}
}

type planner struct {
	in        PlanInput
	ws        []word
	sources   []*source
	consumers []*source
	failed    map[string]bool // skills of the failed step
}

func newPlanner(in PlanInput) *planner {
	p := &planner{in: in, ws: words(in.Task), failed: map[string]bool{}}
	if in.Failed != nil {
		for _, name := range in.Failed.Step.Skills {
			p.failed[name] = true
		}
	}
	for _, s := range harmless(in.Skills, in.Task) {
		src := newSource(s)
		if _, ok := src.consumes(); ok {
			p.consumers = append(p.consumers, src)
		} else if !p.failed[s.Name] {
			p.sources = append(p.sources, src)
		}
	}
	return p
}

// draft is a step before it has a number; from is the index of another draft, or -1.
type draft struct {
	query  query
	from   int
	shape  string
	reason string
	result records // what later steps can build on
}

func (a *approach) reason() string {
	names := make([]string, len(a.drafts))
	for i, d := range a.drafts {
		names[i] = d.query.skill
	}
	s := "The task is answered from " + strings.Join(names, " and then ") + "."
	if unused := a.unused(); len(unused) > 0 {
		s += " Not used: " + strings.Join(unused, ", ") + "."
	}
	return s
}

// best tries every source and returns the approach that leaves the fewest
// words of the task unexplained, or the reason why none is good enough.
func (p *planner) best() (*approach, string) {
	var found []*approach
	reason := ""
	for _, src := range p.sources {
		a, why := p.approach(src)
		if a != nil {
			found = append(found, a)
		} else if reason == "" {
			reason = why
		}
	}
	if len(found) == 0 {
		return nil, either(reason, "No available skill can do this.")
	}
	head := p.head()
	slices.SortStableFunc(found, func(a, b *approach) int {
		return cmp.Or(cmp.Compare(len(a.unused()), len(b.unused())), cmp.Compare(b.about(head), a.about(head)), cmp.Compare(b.score, a.score), cmp.Compare(len(a.drafts), len(b.drafts)))
	})
	return found[0], ""
}

// head is the first noun of the task that some source has records of: what the
// task asks for, where later ones only qualify it.
func (p *planner) head() string {
	for _, w := range p.ws {
		for _, src := range p.sources {
			if knows(src.entity, w.stem) {
				return w.stem
			}
		}
	}
	return ""
}

// approach reads the task against one source and finds what the source needs.
func (p *planner) approach(src *source) (*approach, string) {
	_, missing, filled := fill(src.in, filling{ws: p.ws, src: src})
	a := &approach{ws: p.ws, sources: []*source{src}, filled: filled}
	if len(missing) == 0 {
		a.reading = read(src, p.ws, filled, !p.elsewhere(src))
		a.used = a.reading.used
		a.drafts = []draft{newDraft(a.reading.q, src)}
	} else if why := p.supplied(a, src, missing); why != "" {
		return nil, why
	}
	if why := a.objection(); why != "" {
		return nil, why
	}
	a.score = 2*a.reading.entities + a.reading.fits + a.covered()
	if p.in.Failed != nil && strings.Contains(p.in.Failed.Suggestion, src.skill.Name) {
		a.score += 100
	}
	return a, ""
}

// elsewhere reports whether another source knows where a name in the task
// belongs: then it is not looked for in just any column of this one.
func (p *planner) elsewhere(src *source) bool {
	own := read(src, p.ws, nil, false)
	for _, other := range p.sources {
		if other == src {
			continue
		}
		r := read(other, p.ws, nil, false)
		for i, w := range p.ws {
			if (w.proper || w.quoted) && r.used[i] && !own.used[i] {
				return true
			}
		}
	}
	return false
}

func newDraft(q query, src *source) draft {
	q.skill = src.skill.Name
	d := draft{query: q, from: -1, result: src.records, reason: "the columns that the task asks for"}
	if len(src.records.fields) == 0 {
		d.query.columns, d.shape = []string{"value"}, "string"
		d.reason = "the skill declares no result of its own"
		return d
	}
	d.shape = d.query.shape(src.records)
	if d.query.fold != foldNone {
		d.reason = "one value for what the task asks to be computed"
	}
	return d
}

// because puts the failure that led to a replan before the reason that ends it.
func (p *planner) because(reason string) string {
	if p.in.Failed == nil {
		return reason
	}
	why := either(p.in.Failed.Reason, "step "+fmt.Sprint(p.in.Failed.Step.Step)+" did not succeed")
	return sentence(why) + " No other available skill can do this part."
}

// sentence makes a clause a sentence.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s != "" && !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}
