package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// An agent may have more tools than a request takes. Then those are shown that fit the
// user's message best, and find_tools shows others, in their place where there is no room. What the agent
// may call does not change by it.

// maxTools is how many tools a request to a model has.
const maxTools = 100

// foundTools is how many find_tools shows.
const foundTools = 20

var findToolsTool = model.Tool{
	Name: "find_tools", Description: "You have more tools than are shown. Finds those that fit a query, and shows them from your next reply on.",
	Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"what the tool should do"}},"required":["query"],"additionalProperties":false}`),
}

// shelve leaves the tools of the agent's skills that a request has room for. fixed is how
// many others there are.
func (w *worker) shelve(ctx context.Context, skills []*tool, fixed int) ([]*tool, error) {
	ids, room := w.req.Step.Skills, maxTools-fixed-1
	w.shelf = slices.Clone(ids)
	for i, t := range skills {
		t.later = func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Index(w.shelf, ids[i]) < room
		}
	}
	find := func(ctx context.Context, query string, limit int) (any, error) {
		var found catalog.SkillFindResult
		_, err := w.order(ctx, "skill.find", catalog.SkillFind{Query: cut(query, 1000), Limit: limit}, &found)
		w.showFirst(found.Skills)
		for i, h := range found.Skills {
			if at := slices.Index(ids, h.Name); at >= 0 {
				found.Skills[i].Name = skills[at].Name
			}
		}
		return found, err
	}
	if _, err := find(ctx, w.req.UserTask, catalog.MaxFound); err != nil && !refusedTellably(err) { // else their servers are down, say
		return nil, err
	}
	return append(skills, newTool(tool{Tool: findToolsTool, call: called(func(ctx context.Context, _ string, a findSkillsArgs) (any, error) {
		return find(ctx, a.Query, foundTools)
	})})), nil
}

// showFirst puts skills that were found before the others.
func (w *worker) showFirst(found []catalog.SkillHit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range slices.Backward(found) {
		if at := slices.Index(w.shelf, h.Name); at >= 0 {
			w.shelf = slices.Insert(slices.Delete(w.shelf, at, at+1), 0, h.Name)
		}
	}
}
