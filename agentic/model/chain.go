package model

import (
	"fmt"
	"slices"
	"strings"
)

// supplied builds an approach in which another source first finds the required
// inputs of src that the task does not hold ("the orders of the outlet in
// Berlin": the outlet's identifier comes from a list of outlets). It returns
// why that is impossible, empty when it was done.
func (p *planner) supplied(a *approach, src *source, missing []string) string {
	why := fmt.Sprintf("%s needs %s, which the task does not say.", src.skill.Name, strings.Join(missing, " and "))
	var found *approach
	cost := 0
	for _, supplier := range p.sources {
		columns, ok := supplier.supplies(missing)
		if _, unmet, _ := fill(supplier.in, filling{ws: p.ws, src: supplier}); supplier == src || !ok || len(unmet) > 0 {
			continue
		}
		target := read(src, p.ws, p.naming(supplier, src), false)
		first := read(supplier, p.ws, target.used, true)
		if target.entities == 0 {
			return why
		}
		if len(first.q.where) == 0 && first.q.by == "" {
			continue // nothing singles out the one that is meant
		}
		try := &approach{ws: p.ws, sources: []*source{src, supplier}, used: first.used, filled: a.filled, reading: target}
		try.drafts = feeding(first, target, columns)
		if c := feedCost(try, first, missing[0]); found == nil || c < cost {
			found, cost = try, c
		}
	}
	if found == nil {
		return why
	}
	*a = *found
	return ""
}

// naming marks the words for the records of one source, except where they are
// also those of the other: in "orders of the outlet" the outlet is no column.
func (p *planner) naming(one, other *source) []bool {
	used := make([]bool, len(p.ws))
	for i, w := range p.ws {
		used[i] = one.entity[w.stem] && !other.entity[w.stem]
	}
	return used
}

// feedCost is low for a supplier that explains the task's words, knows which
// of its columns they belong to, and lists what the input identifies.
func feedCost(a *approach, first *reading, input string) int {
	cost := 4 * len(a.unused())
	if slices.ContainsFunc(first.q.where, func(c condition) bool { return c.column == anyText }) {
		cost += 2
	}
	if !overlaps(split(input), first.src.entity) {
		cost++
	}
	return cost
}

// feeding are the drafts of two readings, the first of which finds the one
// record that the second is about.
func feeding(first, second *reading, columns []string) []draft {
	q := first.q
	q.fold, q.of, q.per, q.columns, q.limit = foldNone, "", nil, columns, min(q.limit, 1)
	for _, c := range columns {
		if f := first.src.records.field(c); f.node.nullable {
			first.where(f, opKnown, "")
		}
	}
	q.where = first.q.where
	a, b := newDraft(q, first.src), newDraft(second.q, second.src)
	a.reason = "what " + second.src.skill.Name + " needs to be given"
	b.from, b.query.members = 0, columns
	return []draft{a, b}
}

// supplies finds the columns of a source that hold the named inputs: of the
// same name, or the identifier of what the source lists ("outlet_id" is the
// "id" of an outlet).
func (s *source) supplies(inputs []string) ([]string, bool) {
	var columns []string
	for _, name := range inputs {
		i := slices.IndexFunc(s.records.fields, func(f *field) bool { return f.scalar() && s.holds(f.column, name) })
		if i < 0 {
			return nil, false
		}
		columns = append(columns, s.records.fields[i].column)
	}
	return columns, true
}

func (s *source) holds(column, input string) bool {
	if strings.EqualFold(column, input) {
		return true
	}
	parts := split(input)
	return len(parts) == 2 && idWords[parts[1]] && s.entity[parts[0]] && idWords[stem(column)]
}

// arranged appends the steps of skills that put rows in order, where the task
// wants several rows by some column. After such a skill failed, a step without
// skills does the same from the earlier result.
func (p *planner) arranged(a *approach) []draft {
	drafts := slices.Clone(a.drafts)
	last := drafts[len(drafts)-1]
	q := last.query
	if q.limit == 1 || !strings.HasPrefix(last.shape, "array<{") {
		return drafts
	}
	for _, c := range p.consumers {
		if !p.wants(c, a) {
			continue
		}
		d, ok := p.consume(c, last, len(drafts)-1)
		if ok && p.failed[c.skill.Name] {
			d.query.skill, d.query.arrange = "", false
			d.reason = "the same rows in order, without the skill that failed"
		}
		if ok {
			return append(drafts, d)
		}
	}
	return drafts
}

// wants reports whether a task needs what a consumer of rows does: an order, or
// something that the task names and its source does not do.
func (p *planner) wants(c *source, a *approach) bool {
	q := a.drafts[len(a.drafts)-1].query
	if shapes(c.skill.Name) {
		return q.by != "" && needsOrder(p.ws)
	}
	return slices.ContainsFunc(a.unused(), func(text string) bool { return c.entity[stem(text)] })
}

// consume is the step that hands the rows of an earlier draft to a skill.
func (p *planner) consume(c *source, rows draft, from int) (draft, bool) {
	given := given(rows)
	q := query{skill: c.skill.Name, arrange: true, by: rows.query.by, asc: rows.query.asc}
	if _, missing, _ := fill(c.in, filling{ws: p.ws, src: c, query: q, rows: []row{}, columns: rows.query.output()}); len(missing) > 0 || len(c.records.fields) == 0 {
		return draft{}, false
	}
	result := records{list: c.records.list}
	for _, f := range c.records.fields {
		if !slices.ContainsFunc(given, func(g *field) bool { return g.column == f.column }) {
			result.fields = append(result.fields, f)
		}
	}
	if result.list {
		result.fields = append(result.fields, given...)
	}
	for _, f := range result.fields {
		q.columns = append(q.columns, f.column)
	}
	d := draft{query: q, from: from, result: result, reason: "the rows as " + c.skill.Name + " returns them"}
	d.shape = q.shape(result)
	return d, true
}

// given are the columns of a draft's result as fields for the next.
func given(d draft) []*field {
	var out []*field
	for _, c := range d.query.output() {
		n := &node{required: map[string]bool{}}
		if t := d.query.columnShape(d.result, c); t != "" && !strings.HasPrefix(t, "array") {
			n.types = []string{t}
		}
		out = append(out, &field{column: c, path: []string{c}, node: n, name: split(c)})
	}
	return out
}

// number turns drafts into steps. A draft that equals a completed step is that
// step; the others are numbered on.
func (p *planner) number(drafts []draft) []Step {
	steps := []Step{}
	next := max(p.in.FirstStep, 1)
	numbers := make([]int, len(drafts))
	for i, d := range drafts {
		q := d.query
		s := Step{Step: next, Skills: []string{}, ReturnSpec: ReturnSpec{Shape: d.shape, Reason: d.reason}}
		if q.skill != "" {
			s.Skills = []string{q.skill}
		}
		if d.from >= 0 {
			q.from = numbers[d.from]
			s.InputFromStep = q.from
		}
		s.Task = q.String()
		if done := p.completed(s); done > 0 {
			numbers[i] = done
			continue
		}
		numbers[i] = next
		next++
		steps = append(steps, s)
	}
	return steps
}

func (p *planner) completed(s Step) int {
	for _, c := range p.in.Completed {
		if c.Step.Task == s.Task && c.Step.ReturnSpec.Shape == s.ReturnSpec.Shape && slices.Equal(c.Step.Skills, s.Skills) {
			return c.Step.Step
		}
	}
	return 0
}
