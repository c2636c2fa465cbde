// Package model talks to language models: one interface in front of any of them.
//
// A request has what every chat model takes: a system prompt, messages, and the
// tools that may be called. A reply is text, calls of tools, or both. The models are
// a remote one behind an OpenAI-compatible API ([OpenAI]), and a demonstration that
// needs no key and no network (package offline); both answer the very same requests.
// A model is never trusted: its reply has no effect by itself, and who made the
// request checks the arguments of each call.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Model answers requests. Implementations are safe for concurrent use and keep no
// state between requests.
type Model interface {
	// Name is "driver:model", as usage reports show it.
	Name() string
	// Respond sends one request and streams its answer: on is called with each
	// piece of it, in order, by one goroutine at a time. It may be nil. The error is
	// an *Error; where tokens were counted before it, there is a Response beside it.
	Respond(ctx context.Context, r Request, on func(Event)) (*Response, error)
}

// ContextTokens is how many tokens a request to a model and its reply may have; 0: nobody
// said.
func ContextTokens(m Model) int {
	if c, ok := m.(interface{ ContextTokens() int }); ok {
		return c.ContextTokens()
	}
	return 0
}

// Request is one request to a model.
type Request struct {
	// Agent is the name of the agent that asks. It is not sent to a server.
	Agent    string
	System   string // the system prompt; never a secret
	Messages []Message
	Tools    []Tool
	Choice   Choice
	// Temperature is sent if it is not nil and the model takes one.
	Temperature *float64
	Stop        []string
}

// Choice says whether a reply may, must or must not call a tool.
type Choice string

// The choices; the zero value is ChoiceAuto.
const (
	ChoiceAuto     Choice = ""
	ChoiceRequired Choice = "required"
)

// Role of a message.
type Role string

// The roles. A system message within the conversation is information of this
// system, such as what was summed up of earlier turns.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of the conversation. Every call of an assistant's message is
// answered by one message of a tool, in the order of the calls.
type Message struct {
	Role   Role   `json:"role"`
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`   // of an assistant
	CallID string `json:"call_id,omitempty"` // of a tool: the call that this is the result of
}

// Tool is what a model may call.
type Tool struct {
	Name        string          `json:"name"` // [A-Za-z0-9_-]{1,64}
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the arguments, an object
}

// Call is a model's wish to have a tool called. Arguments are as the model wrote
// them: perhaps no JSON at all.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Event is a piece of a reply while it comes.
type Event struct {
	Text  string // the next piece of the text
	Reset bool   // the text so far is withdrawn: the reply begins anew
}

// Response is a whole reply.
type Response struct {
	Text  string `json:"text"`
	Calls []Call `json:"calls,omitempty"`
	Model string `json:"model"` // the one that answered; with a fallback not always the first
	Usage Usage  `json:"usage"` // of that one
	// Failed are the models that were asked before it and gave no answer.
	Failed []Attempt `json:"failed,omitempty"`
}

// Attempt is a request to a model that gave no answer.
type Attempt struct {
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
}

// Usage is what a request to one model cost, failed attempts included.
type Usage struct {
	InputTokens  int           `json:"input_tokens"`
	OutputTokens int           `json:"output_tokens"`
	Latency      time.Duration `json:"latency"`
}

// Add adds what another request cost.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.Latency += v.Latency
}

// Error is a request that got no usable reply.
type Error struct {
	Reason string // in plain words, for users: without the server's own text
	// Detail is the server's own text, for operators; never shown to users, since it
	// may quote the prompt. It never holds the key.
	Detail    string
	Retryable bool // the same request may succeed later (rate limit, timeout, a cut stream)
	Overflow  bool // the request is longer than the model's context
	Status    int  // of HTTP; 0: there was no response
	Err       error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Reason + ": " + e.Err.Error()
	}
	return e.Reason
}

// GoString is Error, for %#v: Detail may quote the prompt.
func (e *Error) GoString() string { return e.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Detailed is an error for operators: with what the model's server said of it.
func Detailed(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Detail != "" {
		return err.Error() + " (" + e.Detail + ")"
	}
	return err.Error()
}
