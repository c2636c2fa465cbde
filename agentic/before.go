package agentic

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents/catalog"
)

// maxBefore bounds what a failure tells one by one of what came before it, in bytes.
const maxBefore = 8 << 10

// before is what was done all the same in a plan that fails: in one line the steps that were completed and the
// effects of those that were not, and each of them with what it was about, behind the
// results of those that were. Without any both are empty.
func (d *drive) before(ctx context.Context) (line, each string) {
	if d.def.Type == agents.Remote {
		return "", "" // its one call has failed, which is told
	}
	var parts []string
	for _, s := range d.plan.Steps {
		if s.Status == catalog.StepDone {
			parts = append(parts, "completed: "+cut(s.Task, maxWhy))
			each += fmt.Sprintf("completed: %s %s\n", s.Task, cut(string(d.results[s.Step].show(planShow).Result), planShow))
		}
	}
	facts := d.plan.Facts
	if len(facts) > 0 {
		var got catalog.PlanGetResult // has the arguments
		if _, err := d.order(ctx, "plan.get", catalog.PlanGet{PlanID: d.turn.PlanID}, &got); err == nil {
			facts = got.Plan.Facts
		}
	}
	counts := map[string]map[string]int{}
	for _, f := range facts {
		name, about := f.Type, f.Args
		var call catalog.SkillCall
		if f.Type == "skill.call" && json.Unmarshal(f.Args, &call) == nil && call.Skill != "" {
			name, about = call.Skill, call.Input
		}
		if counts[name] == nil {
			counts[name] = map[string]int{}
		}
		counts[name][f.Status]++
		each += fmt.Sprintf("%s %s: %s\n", name, about, f.Status)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		var of []string
		for _, status := range slices.Sorted(maps.Keys(counts[name])) {
			of = append(of, fmt.Sprintf("%d %s", counts[name][status], status))
		}
		parts = append(parts, name+": "+strings.Join(of, ", "))
	}
	return strings.Join(parts, "; "), cut(each, maxBefore)
}
