package agentic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// maxBefore bounds the detailed list of effects before a failure, in bytes.
const maxBefore = 8 << 10

// effects describes the effects that happened in a plan that fails: in one line the completed
// steps and the effects of the others, and in detail each effect with its subject, after the
// results of the completed steps. Without any both are empty.
func (c *conversation) effects(ctx context.Context) (line, each string) {
	if c.def.Type == agents.Remote {
		return "", "" // its one call has failed, which is reported
	}
	var parts []string
	for _, s := range c.plan.Steps {
		if s.Status == catalog.StepDone {
			parts = append(parts, "completed: "+visible.Cut(s.Task, maxWhy))
			each += fmt.Sprintf("completed: %s %s\n", s.Task, visible.Cut(string(c.results[s.Step].show(planShow).Result), planShow))
		}
	}
	var history []catalog.PastIntent
	if len(c.plan.IntentHistory) > 0 {
		history = c.history(ctx)
	}
	counts := map[string]map[string]int{}
	for _, f := range history {
		if isCancelled(f) {
			f.Status = "cancelled"
		}
		name, about := calledBy(f)
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
	return strings.Join(parts, "; "), visible.Cut(each, maxBefore)
}
