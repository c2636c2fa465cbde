package model

import "slices"

// dataRecords is what the schema declares of the data, and what only the sample
// shows of it: a schema may leave members open, or be missing.
func dataRecords(in ScriptInput) records {
	declared, seen := findRecords(readSchema(in.DataSchema)), findRecords(sampleNode(in.Sample, in.Format))
	if len(declared.fields) == 0 {
		return seen
	}
	if slices.Equal(declared.path, seen.path) || in.Format == "jsonl" {
		for _, f := range seen.fields {
			same := func(d *field) bool { return slices.Equal(d.path, f.path) || d.column == f.column }
			if !slices.ContainsFunc(declared.fields, same) {
				declared.fields = append(declared.fields, f)
			}
		}
	}
	return declared
}

// readStep reads a step task in free words, with the words of the user's task
// where the step's own say nothing that the data knows.
func readStep(src *source, task, userTask string) query {
	for _, text := range []string{task, userTask} {
		ws := words(text)
		src.entity = map[string]bool{}
		for _, w := range ws {
			if src.records.about[w.stem] {
				src.entity[w.stem] = true
			}
		}
		if r := read(src, ws, nil, false); r.fits > 0 || r.q.fold != foldNone || r.q.limit > 0 {
			return r.q
		}
	}
	return query{}
}
