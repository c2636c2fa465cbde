package model

import (
	"cmp"
	"slices"
)

// maxSelected is how many skills a selection names at most.
const maxSelected = 6

// selectSkills ranks the candidates by the words they share with the task. A
// skill that arranges rows comes last: it finds nothing by itself, and is kept
// only where the task needs an order and something else was found.
func selectSkills(in SelectInput) SelectOutput {
	type hit struct {
		name  string
		score int
	}
	var hits, shapers []hit
	ws := words(in.Task)
	for _, c := range in.Candidates {
		h := hit{c.Name, overlap(ws, c)}
		switch {
		case shapes(c.Name):
			if needsOrder(ws) {
				shapers = append(shapers, h)
			}
		case h.score > 0:
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := SelectOutput{Skills: []string{}}
	if len(hits) == 0 {
		return out
	}
	shapers = shapers[:min(len(shapers), maxSelected/2)]
	hits = hits[:min(len(hits), maxSelected-len(shapers))]
	for _, h := range append(hits, shapers...) {
		if !slices.Contains(out.Skills, h.name) {
			out.Skills = append(out.Skills, h.name)
		}
	}
	return out
}

// overlap is how much of the task's content a candidate speaks of: a word of
// its name counts three times.
func overlap(ws []word, c Candidate) int {
	name, about := map[string]bool{}, map[string]bool{}
	for _, w := range split(c.Name) {
		name[w] = !tools[w]
	}
	for _, w := range descStems(c.Description) {
		about[w] = true
	}
	seen := map[string]bool{}
	score := 0
	for _, w := range ws {
		base := w.stem
		if s, ok := asSuperlative(w); ok && !s.generic {
			base = stem(s.base)
		}
		if seen[base] || w.quoted || w.proper || !w.content() && !name[base] || stop[base] {
			continue
		}
		seen[base] = true
		switch {
		case name[base]:
			score += 3
		case knows(name, base), knows(about, base):
			score++
		}
	}
	return score
}

// shapes reports whether a skill arranges rows, going by its name.
func shapes(name string) bool { return overlaps(split(name), shaping) }

// needsOrder reports whether a task asks for an order or an extreme of many.
func needsOrder(ws []word) bool {
	return slices.ContainsFunc(ws, func(w word) bool {
		_, ok := asSuperlative(w)
		return ok || shaping[w.stem] || w.lower == "sorted" || w.lower == "ordered"
	})
}
