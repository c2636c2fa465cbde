package agentic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// script is a model with fixed replies: for each agent one reply after the other, then from the
// first one again. A reply is a text, a call, a list of calls, an error, or a function that
// returns one of them.
type script struct {
	mu       sync.Mutex // guards the rest
	replies  map[string][]any
	next     map[string]int
	received []model.Request
}

func says(replies map[string][]any) *script {
	return &script{replies: replies, next: make(map[string]int)}
}

func (*script) Name() string { return "test:script" }

func (s *script) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	reply := s.reply(req)
	if fn, ok := reply.(func(context.Context) error); ok {
		reply = fn(ctx)
	}
	if fn, ok := reply.(func(context.Context) any); ok {
		reply = fn(ctx)
	}
	out := &model.Response{Model: s.Name(), Usage: model.Usage{InputTokens: 10, OutputTokens: 1}}
	switch r := reply.(type) {
	case error:
		return nil, r
	case string:
		out.Text = r
		if on != nil {
			on(model.Event{Text: r})
		}
	case model.Call:
		out.Calls = []model.Call{r}
	case []model.Call:
		out.Calls = r
	case func(func(model.Event)) model.Call: // streamed
		out.Calls, out.Text = []model.Call{r(on)}, "Let me see."
	case func(model.Request) model.Call:
		out.Calls = []model.Call{r(req)}
	}
	for i := range out.Calls {
		out.Calls[i].ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i)
	}
	return out, nil
}

func (s *script) reply(req model.Request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Messages = append([]model.Message{}, req.Messages...)
	s.received = append(s.received, req)
	all := s.replies[req.Agent]
	if len(all) == 0 {
		return &model.Error{Reason: "nothing is scripted for " + req.Agent}
	}
	s.next[req.Agent]++
	return all[(s.next[req.Agent]-1)%len(all)]
}

// requests returns the requests of an agent.
func (s *script) requests(agent string) []model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []model.Request
	for _, r := range s.received {
		if r.Agent == agent {
			out = append(out, r)
		}
	}
	return out
}

// block returns a part of the message that a request begins with, decoded; ok is false if there
// is none.
func block[T any](t *testing.T, req model.Request, name string) (v T, ok bool) {
	t.Helper()
	_, after, ok := strings.Cut(req.Messages[1].Text, "["+name+"]\n")
	if !ok {
		return v, false
	}
	line, _, _ := strings.Cut(after, "\n")
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("[%s]: %v", name, err)
	}
	return v, true
}

// results returns the tools' answers in a conversation, in order.
func results(req model.Request) []string {
	var out []string
	for _, m := range req.Messages {
		if m.Role == model.RoleTool {
			out = append(out, m.Text)
		}
	}
	return out
}

// call is a call of a tool.
func call(name string, args any) model.Call {
	return model.Call{Name: name, Arguments: string(marshal(args))}
}

// The replies of most tests: one step with one skill.
var (
	countStep = catalog.PlanStep{Step: 1, Task: "Count the outlets", Skills: []string{"outlets"}, ReturnSpec: catalog.ReturnSpec{Shape: "{count: integer}", Reason: "asked for"}}
	pick      = call("load_skill", loadSkillArgs{[]string{"outlets"}})
	callIt    = call("outlets", map[string]any{"active": true})
	finishIt  = call("write_memory", writeMemoryArgs{From: "r1"})
	giveUp    = call("insufficient", insufficientArgs{"no such outlets", "ask for others"})
	composed  = "There are ten."
)

// onePlan plans that step, with the number given to the planner.
func onePlan(req model.Request) model.Call {
	step := countStep
	_, after, _ := strings.Cut(req.Messages[1].Text, `{"first_step":`)
	_, _ = fmt.Sscan(after, &step.Step)
	return call("plan", planArgs{Steps: []catalog.PlanStep{step}})
}

// wellDone is a model for a turn without failures.
func wellDone() *script {
	return says(map[string][]any{agents.Planner: {pick, onePlan}, agents.Executor: {callIt, finishIt}, agents.Composer: {composed}})
}

// used returns the usage that a script reports for a number of replies.
func used(agent string, calls int) catalog.Usage {
	return catalog.Usage{Agent: agent, Model: "test:script", Calls: calls, InputTokens: 10 * calls, OutputTokens: calls}
}
