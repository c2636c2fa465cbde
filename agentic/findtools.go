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

type findToolsResult struct {
	Tools []catalog.SkillHit `json:"tools"`
}

// shelf has the skills of an agent with too many, the first of which are shown.
type shelf struct {
	room  int
	order []string          // ids
	wire  map[string]string // their tools, by id
}

// shown says whether a skill is among the first. The lock must be held.
func (s *shelf) shown(id string) bool { return slices.Index(s.order[:s.room], id) >= 0 }

// first puts some skills before the others. The lock must be held.
func (s *shelf) first(ids []string) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return s.wire[id] == "" })
	s.order = append(ids, slices.DeleteFunc(s.order, func(id string) bool { return slices.Contains(ids, id) })...)
}

// shelve leaves the tools of skills, in their order, that a request has room for. fixed is
// how many others there are.
func (w *worker) shelve(ctx context.Context, skills []*tool, fixed int) ([]*tool, error) {
	s := &shelf{room: maxTools - fixed - 1, order: slices.Clone(w.req.Step.Skills), wire: make(map[string]string)}
	for i, t := range skills {
		id := s.order[i]
		s.wire[id] = t.Name
		t.later = func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return s.shown(id)
		}
	}
	w.shelf = s
	hits, err := w.findSkills(ctx, w.req.UserTask, catalog.MaxFound)
	if err != nil && !refusedTellably(err) { // else their servers are down, say
		return nil, err
	}
	w.showFirst(hits)
	return append(skills, newTool(tool{Tool: findToolsTool, call: called(func(ctx context.Context, _ string, a findSkillsArgs) (any, error) {
		hits, err := w.findSkills(ctx, a.Query, foundTools)
		return w.showFirst(hits), err
	})})), nil
}

func (w *worker) findSkills(ctx context.Context, query string, limit int) ([]catalog.SkillHit, error) {
	var found catalog.SkillFindResult
	_, err := w.order(ctx, "skill.find", catalog.SkillFind{Query: cut(query, 1000), Limit: limit}, &found)
	return found.Skills, err
}

// showFirst shows skills that were found, and gives them by the names of their tools.
func (w *worker) showFirst(hits []catalog.SkillHit) (out findToolsResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out.Tools = []catalog.SkillHit{}
	if w.shelf == nil {
		return out
	}
	var ids []string
	for _, h := range hits {
		if name := w.shelf.wire[h.Name]; name != "" {
			ids = append(ids, h.Name)
			out.Tools = append(out.Tools, catalog.SkillHit{Name: name, Description: h.Description})
		}
	}
	w.shelf.first(ids)
	return out
}
