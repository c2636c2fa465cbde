package agentic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// verifyPlan lists the errors of a plan before it is signed: numbers, inputs, skills that can be
// loaded, shapes that compile and that the skill's declared output, or the step's input, can
// meet. Empty: none.
func verifyPlan(a planArgs, req planRequest, loaded map[string]catalog.Manifest, others []catalog.OtherAgent) []string {
	steps := a.Steps
	var wrong []string
	say := func(n int, format string, a ...any) {
		wrong = append(wrong, fmt.Sprintf("step %d: ", n)+fmt.Sprintf(format, a...))
	}
	for _, n := range a.Drop {
		if !slices.ContainsFunc(req.Waiting, func(s catalog.PlanStep) bool { return s.Step == n }) {
			return []string{fmt.Sprintf("drop: %d is not among the steps that wait", n)}
		}
	}
	req.Waiting = slices.DeleteFunc(slices.Clone(req.Waiting), func(s catalog.PlanStep) bool { return slices.Contains(a.Drop, s.Step) })
	switch {
	case len(steps) == 0 && a.Answer == "":
		return []string{"a plan has steps, an answer, or says why it is infeasible"}
	case len(steps) > 0 && a.Answer != "":
		return []string{"a plan with an answer has no steps"}
	case len(steps) == 0 && req.Revision > 1:
		return []string{"a revision has at least one step; say infeasible if nothing can be done"}
	}
	if len(steps) > req.room() {
		return []string{fmt.Sprintf("there is room for %d steps; say infeasible if the task does not fit", req.room())}
	}
	shapes := make(map[int]string)
	for _, s := range req.retained() {
		shapes[s.Step] = s.ReturnSpec.Shape
	}
	for i, s := range steps {
		if s.Step != req.FirstStep+i {
			say(s.Step, "numbers must run on from %d", req.FirstStep)
		}
		var inputs []string // their shapes
		for _, n := range s.Reads() {
			if _, ok := shapes[n]; !ok {
				say(s.Step, "inputs: %d is no earlier step", n)
			}
			inputs = append(inputs, shapes[n])
		}
		for _, n := range s.After {
			if _, ok := shapes[n]; !ok {
				say(s.Step, "after: %d is no earlier step", n)
			}
		}
		if s.Agent != "" {
			if w := wrongAgent(s, others); w != "" {
				say(s.Step, "agent: %s", w)
			}
			if _, err := schemas.CompileShape(s.ReturnSpec.Shape); err != nil {
				say(s.Step, "return_spec.shape: %v", err)
			}
			shapes[s.Step] = s.ReturnSpec.Shape
			continue
		}
		for _, name := range s.Skills {
			if _, ok := loaded[name]; !ok {
				say(s.Step, "there is no skill %q now", name)
			}
		}
		if len(s.Skills) == 0 && len(inputs) == 0 {
			say(s.Step, "a step without skills needs inputs")
		}
		compiled, err := schemas.CompileShape(s.ReturnSpec.Shape)
		if err != nil {
			say(s.Step, "return_spec.shape: %v", err)
		} else if !meetable(compiled, s, loaded, inputs) {
			say(s.Step, "nothing that the step can see declares any member of return_spec.shape")
		}
		shapes[s.Step] = s.ReturnSpec.Shape
	}
	for i, c := range a.Calls {
		at := slices.IndexFunc(steps, func(s catalog.PlanStep) bool { return s.Step == c.Step && slices.Contains(s.Skills, c.Skill) })
		if at < 0 {
			wrong = append(wrong, fmt.Sprintf("call %d: step %d has no skill %q", i, c.Step, c.Skill))
			continue
		}
		for _, v := range violations(schemas.Tolerate(loaded[c.Skill].InputSchema).Schema, c.Input) {
			wrong = append(wrong, fmt.Sprintf("call %d: input%s", i, v))
		}
	}
	return wrong
}

// meetable reports whether a shape can be met. A shape of records can be if a skill's output or
// an input's shape declares one of its members. An output that declares nothing may contain
// anything, and scalars can be computed from anything.
func meetable(shape json.RawMessage, s catalog.PlanStep, loaded map[string]catalog.Manifest, inputs []string) bool {
	wanted := make(map[string]bool)
	members(shape, wanted)
	if len(wanted) == 0 {
		return true
	}
	declared := make(map[string]bool)
	for _, name := range s.Skills {
		k := loaded[name]
		if len(k.OutputSchema) == 0 {
			return true
		}
		members(k.OutputSchema, declared)
		members(k.InputSchema, declared)
	}
	for _, input := range inputs {
		if compiled, err := schemas.CompileShape(input); err == nil {
			members(compiled, declared)
		}
	}
	if len(declared) == 0 {
		return true
	}
	for name := range wanted {
		if declared[name] || aggregated(name, declared) {
			return true
		}
	}
	return false
}

// aggregates are the values that a script can compute from many values of one member.
var aggregates = []string{"count", "sum", "total", "average", "mean", "min", "max", "value"}

// aggregated reports whether a name is that of an aggregate, alone or joined with a declared
// member, such as average_amount or amount_max.
func aggregated(name string, declared map[string]bool) bool {
	return slices.ContainsFunc(aggregates, func(aggregate string) bool {
		after, first := strings.CutPrefix(name, aggregate+"_")
		before, last := strings.CutSuffix(name, "_"+aggregate)
		return name == aggregate || first && declared[after] || last && declared[before]
	})
}

// members collects the property names and titles of a JSON Schema.
func members(schema json.RawMessage, into map[string]bool) {
	var v any
	if json.Unmarshal(schema, &v) == nil {
		walk(v, into)
	}
}

func walk(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if props, ok := v["properties"].(map[string]any); ok {
			for name, p := range props {
				into[name] = true
				if m, ok := p.(map[string]any); ok {
					if title, ok := m["title"].(string); ok {
						into[title] = true
					}
				}
			}
		}
		for _, x := range v {
			walk(x, into)
		}
	case []any:
		for _, x := range v {
			walk(x, into)
		}
	}
}
