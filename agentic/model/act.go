package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// chooseAction decides the next move of a step: call its skill, then take the
// response as it is when that is the result already, else extract from it.
func chooseAction(in ActionInput) ActionOutput {
	may := harmless(in.Skills, in.UserTask)
	answered := len(in.Calls) > 0 && in.Calls[len(in.Calls)-1].Error == ""
	switch {
	case len(may) > 0:
		in.Skills = may
	case len(in.Skills) > 0 && !answered: // there is nothing but a call to go on with
		return insufficient(in.Skills[0].Name+" changes something, and the task does not name it.", "Name "+in.Skills[0].Name+" where it is meant.")
	}
	switch {
	case len(in.Calls) > 0:
		return afterCall(in)
	case len(in.Violations) > 0:
		return insufficient("The skill could not be called: "+sentence(in.Violations[0]), "")
	case len(in.Skills) > 0:
		return call(in, stepSkill(in))
	case isNull(in.Input):
		return insufficient("The step has neither a skill to call nor an earlier result to work on.", "")
	}
	return ActionOutput{Action: ActExtract, Input: emptyObject(), Reason: "The result is computed from the earlier step's."}
}

func emptyObject() json.RawMessage { return json.RawMessage("{}") }

func insufficient(reason, suggestion string) ActionOutput {
	return ActionOutput{Action: ActInsufficient, Input: emptyObject(), Reason: reason, Suggestion: suggestion}
}

// stepSkill is the skill that the step's task names, else the one whose
// declaration shares most words with it.
func stepSkill(in ActionInput) Skill {
	q, _ := readQuery(in.Task)
	best, score := in.Skills[0], -1
	for _, s := range in.Skills {
		if s.Name == q.skill {
			return s
		}
		if n := overlap(words(in.Task+" "+in.UserTask), Candidate{s.Name, s.Description}); n > score {
			best, score = s, n
		}
	}
	return best
}

func call(in ActionInput, s Skill) ActionOutput {
	src := newSource(s)
	q, written := readQuery(in.Task)
	text := in.Task
	if written {
		text = in.UserTask
	}
	f := filling{ws: words(text), src: src, query: q}
	if !isNull(in.Input) {
		f.rows, f.columns = inputRows(in.Input)
	}
	if !written {
		f.query = askedOrder(f)
	}
	input, missing, _ := fill(src.in, f)
	if len(missing) > 0 {
		reason, suggestion := lacking(s, missing, f)
		return insufficient(reason, suggestion)
	}
	return ActionOutput{Action: ActCall, Skill: s.Name, Input: input, Reason: s.Name + " is the skill of this step."}
}

// inputRows reads an earlier result as rows: an array of objects, one object,
// or an array of bare values.
func inputRows(raw json.RawMessage) ([]row, []string) {
	recs := findRecords(observe(string(raw)))
	var rows []row
	if json.Unmarshal(walkJSON(raw, recs.path), &rows) != nil {
		var one row
		if json.Unmarshal(raw, &one) == nil && one != nil {
			rows = []row{one}
		}
	}
	var columns []string
	for _, f := range recs.fields {
		columns = append(columns, f.column)
	}
	if rows == nil {
		rows = []row{}
	}
	return rows, columns
}

func walkJSON(raw json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var m row
		if json.Unmarshal(raw, &m) != nil {
			return nil
		}
		raw = m[name]
	}
	return raw
}

// askedOrder finds the column and direction in a step task of free words.
func askedOrder(f filling) query {
	src := &source{entity: map[string]bool{}, about: map[string]bool{}, records: records{list: true}}
	if raw, err := json.Marshal(f.rows); err == nil {
		src.records = findRecords(observe(string(raw)))
	}
	q := read(src, f.ws, nil, false).q
	if q.by != "" {
		return q
	}
	for i, w := range f.ws {
		if c := src.records.field(w.text); c != nil && i > 0 && f.ws[i-1].lower == "by" {
			q.by = c.column
		}
	}
	return q
}

// lacking says in plain words which input could not be found, and why.
func lacking(s Skill, missing []string, f filling) (reason, suggestion string) {
	name := strings.ReplaceAll(missing[0], "_", " ")
	column := f.column(missing[0])
	switch n := len(distinct(f.rows, column)); {
	case f.rows != nil && len(f.rows) == 0:
		return fmt.Sprintf("The earlier step found nothing, so there is no %s for %s.", name, s.Name), "Look for it by other words."
	case column != "" && n > 1:
		return fmt.Sprintf("%s takes one %s, but the earlier step found %d.", s.Name, name, n), "Name exactly one."
	}
	return fmt.Sprintf("%s needs %s, and neither the task nor an earlier step says it.", s.Name, name), "Say which " + name + " is meant."
}

func afterCall(in ActionInput) ActionOutput {
	last := in.Calls[len(in.Calls)-1]
	switch {
	case last.Error != "":
		return failedCall(in, last)
	case last.Large:
		return extract("The response of " + last.Skill + " is too large to be the result.")
	case isNull(last.Output):
		return insufficient(last.Skill+" returned nothing.", "Try another skill.")
	case len(in.Violations) == 0 && fits(readSchema(in.Schema), last.Output) && !unfinished(in):
		return ActionOutput{Action: ActFinish, Input: emptyObject(), Reason: "The response already is the result."}
	}
	return extract("The result is computed from the response of " + last.Skill + ".")
}

func extract(reason string) ActionOutput {
	return ActionOutput{Action: ActExtract, Input: emptyObject(), Reason: reason}
}

// failedCall turns to a skill of the step that was not called yet.
func failedCall(in ActionInput, last CallResult) ActionOutput {
	for _, s := range in.Skills {
		called := false
		for _, c := range in.Calls {
			called = called || c.Skill == s.Name
		}
		if !called {
			if out := call(in, s); out.Action == ActCall {
				return out
			}
		}
	}
	return insufficient(fmt.Sprintf("%s could not be used: %s", last.Skill, sentence(last.Error)), "Try another skill.")
}

// unfinished reports whether the step asks for more than the response as it
// came, although its members are right: a filter, a fold, an order, a limit.
func unfinished(in ActionInput) bool {
	q, ok := readQuery(in.Task)
	if !ok {
		src := &source{records: findRecords(readSchema(in.Schema)), entity: map[string]bool{}, about: map[string]bool{}}
		q = read(src, words(in.Task), nil, false).q
		q.arrange = shapes(stepSkill(in).Name)
	}
	for _, c := range q.where {
		if c.op != opKnown {
			return true
		}
	}
	return q.fold != foldNone || !q.arrange && (q.by != "" || q.limit > 0)
}
