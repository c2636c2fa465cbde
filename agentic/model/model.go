// Package model is how agents think: one interface in front of any language
// model, and the only place that talks to one.
//
// A thought is structured: instructions (the prompt of the role), an input
// document, and the JSON Schema that the output must satisfy. Every thought of
// this system has a [Purpose] with a fixed input and output type declared in
// this package, so that a remote model ("openai": prompt and input rendered as
// messages, the schema sent as a strict response format) and the demonstration
// that needs no key and no network (package offline) answer the very same
// questions. A model is never trusted: its output is validated against the
// schema by [Think] and has no effect by itself.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Model completes one structured thought. Implementations are safe for
// concurrent use and keep no state between calls. The error is *Error.
type Model interface {
	// Name is "provider:model", as usage reports show it.
	Name() string
	Complete(ctx context.Context, req Request) (Reply, error)
}

// Purpose names a thought; it is the span name and the response format name.
type Purpose string

// The thoughts of the three roles.
const (
	SelectSkills Purpose = "select_skills" // planner: SelectInput -> SelectOutput
	WritePlan    Purpose = "write_plan"    // planner: PlanInput -> PlanOutput
	ChooseAction Purpose = "choose_action" // task: ActionInput -> ActionOutput
	WriteScript  Purpose = "write_script"  // task: ScriptInput -> ScriptOutput
	Compose      Purpose = "compose"       // manager: ComposeInput -> ComposeOutput
)

// Request is one thought.
type Request struct {
	Purpose      Purpose
	Instructions string          // system prompt of the role, soul included; never a secret
	Input        json.RawMessage // the purpose's input document
	Schema       json.RawMessage // JSON Schema 2020-12 of the output
	Temperature  float64         // 0 for everything that ends in an order
	MaxTokens    int             // 0: the model's own limit
}

// Reply is a completed thought. Output is JSON, not yet validated.
type Reply struct {
	Output json.RawMessage
	Usage  Usage
}

// Usage is what a completion cost.
type Usage struct {
	InputTokens  int           `json:"input_tokens"`
	OutputTokens int           `json:"output_tokens"`
	Latency      time.Duration `json:"-"`
}

// Error is a model call that gave no usable output. Retryable says whether the
// same request may succeed later (rate limit, timeout, a cut stream).
type Error struct {
	Reason    string
	Retryable bool
	Err       error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Reason + ": " + e.Err.Error()
	}
	return e.Reason
}

func (e *Error) Unwrap() error { return e.Err }

// ErrOutput is wrapped by errors of outputs that are not JSON or break their schema.
var ErrOutput = errors.New("model output does not match its schema")
