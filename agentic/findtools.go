package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// An agent may have more tools than a request can carry. Then the request has those that fit the
// user's message best, and find_tools shows others, replacing some if there is no room. The
// agent's rights do not change.

// maxTools bounds the tools of a request to a model.
const maxTools = 100

// foundTools bounds the results of find_tools.
const foundTools = 20

var findToolsTool = model.Tool{
	Name: "find_tools", Description: "You have more tools than are shown. Finds those that fit a query, and shows them from your next reply on.",
	Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"what the tool should do"}},"required":["query"],"additionalProperties":false}`),
}

// shelve leaves the tools of the agent's skills that a request has room for. fixed is the number
// of other tools.
func (w *worker) shelve(ctx context.Context, skills []*tool, fixed int) ([]*tool, error) {
	ids, room := w.req.Step.Skills, maxTools-fixed-1
	w.shelf = slices.Clone(ids)
	for i, t := range skills {
		t.usable = func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Index(w.shelf, ids[i]) < room
		}
	}
	find := func(ctx context.Context, q catalog.SkillFind) ([]catalog.SkillHit, error) {
		var found catalog.SkillFindResult
		q.Query = visible.Cut(q.Query, 1000)
		_, err := w.submit(ctx, "skill.find", q, &found)
		w.showFirst(found.Skills)
		for i, h := range found.Skills {
			if at := slices.Index(ids, h.Name); at >= 0 {
				found.Skills[i].Name = skills[at].Name
			}
		}
		return found.Skills, err
	}
	if _, err := find(ctx, catalog.SkillFind{Query: w.req.UserTask, Limit: catalog.MaxFound}); err != nil && !refusedTellably(err) { // otherwise their servers may be down
		return nil, err
	}
	return append(skills, newTool(tool{Tool: findToolsTool, call: called(func(ctx context.Context, _ string, a catalog.FindArgs) (any, error) {
		found, err := find(ctx, catalog.SkillFind{Query: a.Query, Limit: foundTools, Related: true})
		return skillsFound(found, foundTools), err
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
