package agentic

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"aob.dev/writ/agentic/model"
)

// script is a model that answers what a test says: for each purpose one answer
// after the other, the last one again and again. An answer is a document, an
// error, or a function that gives one of them.
type script struct {
	mu      sync.Mutex // guards the rest
	answers map[model.Purpose][]any
	asked   []model.Request
}

func says(answers map[model.Purpose][]any) *script { return &script{answers: answers} }

func (*script) Name() string { return "test:script" }

func (s *script) Complete(ctx context.Context, req model.Request) (model.Reply, error) {
	answer := s.next(req)
	if fn, ok := answer.(func(context.Context) error); ok {
		answer = fn(ctx)
	}
	if err, ok := answer.(error); ok {
		return model.Reply{}, err
	}
	out, err := json.Marshal(answer)
	return model.Reply{Output: out}, err
}

func (s *script) next(req model.Request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req)
	left := s.answers[req.Purpose]
	if len(left) == 0 {
		return &model.Error{Reason: "nothing is scripted for " + string(req.Purpose)}
	}
	if len(left) > 1 {
		s.answers[req.Purpose] = left[1:]
	}
	return left[0]
}

// inputs are what the model was asked for a purpose.
func (s *script) inputs(p model.Purpose) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []json.RawMessage
	for _, r := range s.asked {
		if r.Purpose == p {
			out = append(out, r.Input)
		}
	}
	return slices.Clip(out)
}

// The answers of most tests: one step with one skill.
var (
	countStep = model.Step{Step: 1, Task: "Count the outlets", Skills: []string{"outlets"}, ReturnSpec: model.ReturnSpec{Shape: "{count: integer}", Reason: "asked for"}}
	pick      = model.SelectOutput{Skills: []string{"outlets"}}
	onePlan   = model.PlanOutput{Feasible: true, Reason: "it can", Steps: []model.Step{countStep}}
	callIt    = model.ActionOutput{Action: model.ActCall, Skill: "outlets", Input: json.RawMessage(`{"active":true}`)}
	finishIt  = model.ActionOutput{Action: model.ActFinish, Input: json.RawMessage(`{}`)}
	giveUp    = model.ActionOutput{Action: model.ActInsufficient, Input: json.RawMessage(`{}`), Reason: "no such outlets", Suggestion: "ask for others"}
	composed  = model.ComposeOutput{Response: "There are ten."}
)
