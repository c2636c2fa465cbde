package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// A step of a planner's plan may name an agent instead of skills. The task runs the agent as in a
// plan of its own, except that its message is that of a step and its reply becomes the result of
// the step.

// agents returns the agents that the plan's steps may name.
func (w *planning) agents(ctx context.Context) ([]catalog.OtherAgent, error) {
	if !w.req.Agents {
		return nil, nil
	}
	var got catalog.AgentGetResult
	err := w.submit(ctx, "agent.get", catalog.AgentGet{}, &got)
	return got.Others, err
}

// planToolFor returns the planner's output tool. A step can name an agent if there are any.
func planToolFor(others []catalog.OtherAgent) model.Tool {
	t := planTool
	if len(others) == 0 {
		return t
	}
	names := make([]string, len(others))
	for i, a := range others {
		names[i] = a.Agent
	}
	agent := map[string]any{
		"type": "string", "enum": names,
		"description": "an agent under [Agents] that does the whole step with tools of its own. Then skills is empty and shape is string, unless its description says what else it returns. Name one where the step is the subject of its description",
	}
	t.Schema = json.RawMessage(strings.Replace(string(t.Schema), `"inputs":`, `"agent":`+string(compact(agent))+`,"inputs":`, 1))
	return t
}

// wrongAgent describes the error in the agent of a step; empty: none.
func wrongAgent(s catalog.PlanStep, others []catalog.OtherAgent) string {
	switch {
	case len(s.Skills) > 0:
		return "a step has an agent or skills, not both"
	case !slices.ContainsFunc(others, func(a catalog.OtherAgent) bool { return a.Agent == s.Agent }):
		return fmt.Sprintf("there is no agent %q", s.Agent)
	}
	return ""
}

// asAgent runs the agent of the plan or of the step.
//
// Crash: before write_memory the next task continues from the transcript; after it, the next task
// writes a result of its own, and the step names that one.
func (w *worker) asAgent(ctx context.Context) error {
	if w.req.Step.Agent == "" {
		return w.converse(ctx)
	}
	if err := w.compileShape(); err != nil {
		return err
	}
	message, err := w.message(ctx)
	if err != nil {
		return err
	}
	w.req.UserTask = message
	if err := w.converse(ctx); err != nil {
		return err
	}
	data := json.RawMessage(w.reply)
	if !json.Valid(data) || w.check.ValidateBytes(data) != nil { // it is a text, possibly with digits only
		data = compact(w.reply)
	}
	w.reply = ""
	err = w.rememberLast(ctx, writeMemoryArgs{Data: data})
	if wrong, ok := errors.AsType[*mistake](err); ok {
		return &stopError{"the agent's reply is not what return_spec asks for: " + wrong.Error(), "ask for a string, or use skills"}
	}
	return err
}
