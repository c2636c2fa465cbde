package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
)

// mind is a language model that a test plays: one function for each thought.
// Without one, all candidates are selected and the offline model answers.
type mind struct {
	pick   []string // the candidates to select; nil: all
	plan   func(model.PlanInput) model.PlanOutput
	act    func(model.ActionInput) model.ActionOutput
	script func(model.ScriptInput) model.ScriptOutput
	broken func(model.Request) error // the model itself fails; nil: never

	mu       sync.Mutex // guards requests; thoughts of one turn come one by one
	requests []model.Request
}

func (m *mind) Name() string { return "test:scripted" }

func (m *mind) Complete(ctx context.Context, req model.Request) (model.Reply, error) {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	if m.broken != nil {
		if err := m.broken(req); err != nil {
			return model.Reply{}, err
		}
	}
	switch {
	case req.Purpose == model.SelectSkills:
		return answer(req, func(in model.SelectInput) (out model.SelectOutput) {
			for _, c := range in.Candidates {
				if m.pick == nil || slices.Contains(m.pick, c.Name) {
					out.Skills = append(out.Skills, c.Name)
				}
			}
			return out
		})
	case req.Purpose == model.WritePlan && m.plan != nil:
		return answer(req, m.plan)
	case req.Purpose == model.ChooseAction && m.act != nil:
		return answer(req, m.act)
	case req.Purpose == model.WriteScript && m.script != nil:
		return answer(req, m.script)
	}
	return offline.Model{}.Complete(ctx, req)
}

func answer[In, Out any](req model.Request, think func(In) Out) (model.Reply, error) {
	var in In
	if err := json.Unmarshal(req.Input, &in); err != nil {
		return model.Reply{}, &model.Error{Reason: "input", Err: err}
	}
	out, err := json.Marshal(think(in))
	return model.Reply{Output: out}, err
}

// asked are the inputs of one thought, in order.
func asked[In any](t *testing.T, m *mind, purpose model.Purpose) []In {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []In
	for _, r := range m.requests {
		if r.Purpose != purpose {
			continue
		}
		var in In
		if err := json.Unmarshal(r.Input, &in); err != nil {
			t.Fatal(err)
		}
		out = append(out, in)
	}
	return out
}

// told says whether any request held a text.
func (m *mind) told(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if strings.Contains(string(r.Input), text) || strings.Contains(r.Instructions, text) {
			return true
		}
	}
	return false
}

// Decisions of a task.

func call(skill, input string) model.ActionOutput {
	return model.ActionOutput{Action: model.ActCall, Skill: skill, Input: json.RawMessage(input), Reason: "it is needed"}
}

func do(a model.Action) model.ActionOutput {
	return model.ActionOutput{Action: a, Input: json.RawMessage("{}"), Reason: "it is time"}
}

func insufficient(reason, suggestion string) model.ActionOutput {
	return model.ActionOutput{Action: model.ActInsufficient, Input: json.RawMessage("{}"), Reason: reason, Suggestion: suggestion}
}

func steps(list ...model.Step) model.PlanOutput {
	return model.PlanOutput{Feasible: true, Reason: "it can be done", Steps: list}
}

func step(n int, task, skill string, from int, shape string) model.Step {
	s := model.Step{Step: n, Task: task, Skills: []string{}, InputFromStep: from, ReturnSpec: model.ReturnSpec{Shape: shape, Reason: "the answer"}}
	if skill != "" {
		s.Skills = append(s.Skills, skill)
	}
	return s
}
