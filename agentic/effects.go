package agentic

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// maxEffects bounds what a failure tells of effects one by one, in bytes.
const maxEffects = 8 << 10

// effects are what steps that were not completed did all the same: in one line, and
// order by order with what each was about. Without any both are empty.
func (d *drive) effects(ctx context.Context) (line, each string) {
	facts := d.plan.Facts
	if len(facts) == 0 {
		return "", ""
	}
	var got catalog.PlanGetResult // has the arguments
	if _, err := d.order(ctx, "plan.get", catalog.PlanGet{PlanID: d.turn.PlanID}, &got); err == nil {
		facts = got.Plan.Facts
	}
	var names []string
	counts := map[string]map[string]int{}
	statuses := []string{"done", "held", "open", "indeterminate", "failed"}
	for _, f := range facts {
		name, about := f.Type, f.Args
		var call catalog.SkillCall
		if f.Type == "skill.call" && json.Unmarshal(f.Args, &call) == nil && call.Skill != "" {
			name, about = call.Skill, call.Input
		}
		if counts[name] == nil {
			names, counts[name] = append(names, name), map[string]int{}
		}
		counts[name][f.Status]++
		each += fmt.Sprintf("%s %s: %s\n", name, about, f.Status)
	}
	var parts []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		var of []string
		for _, status := range statuses {
			if n := counts[name][status]; n > 0 {
				of = append(of, fmt.Sprintf("%d %s", n, status))
			}
		}
		parts = append(parts, name+": "+strings.Join(of, ", "))
	}
	return strings.Join(parts, "; "), cut(each, maxEffects)
}
