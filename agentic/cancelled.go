package agentic

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// A plan that ends cancels its calls that wait for approval, as does a revision that drops their
// step. The answer names them, in words of this system: no model has to remember them.

// isCancelled reports whether a call of a plan that ends is cancelled, and never made.
func isCancelled(f catalog.PastIntent) bool {
	return f.Status == "held" || f.Code == intents.Cancelled
}

// withCancelled appends to the answer of a plan that ends the calls that it cancels.
func (c *conversation) withCancelled(ctx context.Context, response string) string {
	if !slices.ContainsFunc(c.plan.IntentHistory, isCancelled) {
		return response
	}
	var lines []string
	for _, f := range c.history(ctx) {
		if isCancelled(f) {
			name, input := calledBy(f)
			lines = append(lines, "\n- "+visible.Cut(name+" "+string(input), maxCallText))
		}
	}
	said := fmt.Sprintf("\n\nCancelled, not carried out (%d):%s", len(lines), strings.Join(lines, ""))
	said = visible.Cut(guarded(said), maxResponse/2)
	return strings.TrimSpace(visible.Cut(response, maxResponse-len(said)) + said)
}

// history returns the calls of the plan that have no result in it, with their arguments if they
// can be read.
func (c *conversation) history(ctx context.Context) []catalog.PastIntent {
	var got catalog.PlanGetResult
	if _, err := c.submit(ctx, "plan.get", catalog.PlanGet{PlanID: c.turn.PlanID}, &got); err != nil {
		return c.plan.IntentHistory
	}
	return got.Plan.IntentHistory
}

// calledBy returns what an intent calls, with its input.
func calledBy(f catalog.PastIntent) (name string, input json.RawMessage) {
	var call catalog.SkillCall
	if f.Type == "skill.call" && json.Unmarshal(f.Args, &call) == nil && call.Skill != "" {
		return call.Skill, call.Input
	}
	return f.Type, f.Args
}
