// Package model talks to language models: one interface for all of them.
//
// A request has the parts that every chat model accepts: a system prompt, messages, and the
// available tools. A reply is text, calls of tools, or both. The models are a remote one behind
// an OpenAI-compatible API ([OpenAI]), and a demonstration that needs no key and no network
// (package offline); both answer the same requests. A model is never trusted: its reply has no
// effect by itself, and the caller checks the arguments of each call.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Model answers requests. Implementations are safe for concurrent use and have no state between
// requests.
type Model interface {
	// Name is "driver:model", as usage reports show it.
	Name() string
	// Respond sends one request and streams its answer: on is called with each piece of it, in
	// order, by one goroutine at a time. on may be nil. The error is an *Error; if tokens were
	// counted before it, a Response is returned too.
	Respond(ctx context.Context, r Request, on func(Event)) (*Response, error)
}

// ContextTokens returns how many tokens a request to a model and its reply may have; 0: unknown.
func ContextTokens(m Model) int {
	if c, ok := m.(interface{ ContextTokens() int }); ok {
		return c.ContextTokens()
	}
	return 0
}

// Request is one request to a model.
type Request struct {
	// Agent is the name of the requesting agent. It is not sent to a server.
	Agent    string
	System   string // the system prompt; never a secret
	Messages []Message
	Tools    []Tool
	Choice   Choice
	// The rest is sent if it is set and the model accepts it.
	Temperature *float64
	Stop        []string
	MaxTokens   int    // of the reply, thinking included
	Effort      string // of thinking: low, medium or high
	Parallel    *bool  // whether a reply may have several calls
}

// Choice says whether a reply may, must or must not call a tool.
type Choice string

// The choices; the zero value is ChoiceAuto.
const (
	ChoiceAuto     Choice = ""
	ChoiceRequired Choice = "required"
	ChoiceNone     Choice = "none"
)

// Role of a message.
type Role string

// The roles. A system message within the conversation is information from this system, such as a
// summary of earlier turns.
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
	Note   string `json:"note,omitempty"` // of this system to a message of a user, sent before it
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`   // of an assistant
	CallID string `json:"call_id,omitempty"` // of a tool: the call whose result this is
	// Images of a user are URLs, with http(s): or data:.
	Images []string `json:"images,omitempty"`
	// Shown of a user are images of results, likewise, for models that are set to take them.
	Shown []string `json:"shown,omitempty"`
	// Opaque of an assistant is that of the response.
	Opaque *Opaque `json:"opaque,omitempty"`
}

// Opaque is what only the model that wrote a reply can read, such as encrypted thoughts. It goes
// back to that model as it came, and to no other.
type Opaque struct {
	Model   string    `json:"model"`             // its name, as in Response
	Members Members   `json:"members,omitempty"` // of the message
	Calls   []Members `json:"calls,omitempty"`   // of each of its calls
}

// Members are members of a JSON object.
type Members map[string]json.RawMessage

// Tool is available for a model to call.
type Tool struct {
	Name        string          `json:"name"` // [A-Za-z0-9_-]{1,64}
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the arguments, an object
	// Pure: calls change nothing, so one may be executed that the model wrote as text.
	Pure bool `json:"-"`
}

// Call is a model's request to call a tool. Arguments are as the model wrote them: possibly
// invalid JSON.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Event is a piece of a reply while it is streamed.
type Event struct {
	Text  string // the next piece
	Reset bool   // what was written so far is withdrawn: the reply begins anew
	Tool  string // Text is the next piece of the arguments of a call of it; empty: of the reply's text
	Call  int    // of a Tool: which call of the reply
}

// Response is a whole reply.
type Response struct {
	Text  string `json:"text"`
	Calls []Call `json:"calls,omitempty"`
	Model string `json:"model"` // the one that answered; with a fallback not always the first
	Usage Usage  `json:"usage"` // of the model that answered
	// Opaque belongs in the message that appends the reply to the conversation.
	Opaque *Opaque `json:"opaque,omitempty"`
	// Failed are the models asked before it that gave no answer.
	Failed []Attempt `json:"failed,omitempty"`
}

// Attempt is a request to a model that gave no answer.
type Attempt struct {
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
}

// Usage is the cost of a request to one model, including failed attempts.
type Usage struct {
	InputTokens  int           `json:"input_tokens"`
	CachedTokens int           `json:"cached_tokens,omitempty"` // of the input tokens
	OutputTokens int           `json:"output_tokens"`
	Estimated    bool          `json:"estimated,omitempty"` // a server did not report tokens
	Latency      time.Duration `json:"latency"`
}

// Add adds the cost of another request.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.CachedTokens += v.CachedTokens
	u.Estimated = u.Estimated || v.Estimated
	u.OutputTokens += v.OutputTokens
	u.Latency += v.Latency
}

// Error is a request that got no usable reply.
type Error struct {
	Reason string // in plain words, for users: without the server's own text
	// Detail is the server's own text, for operators; never shown to users, since it may quote
	// the prompt. It never contains the key.
	Detail    string
	Retryable bool // the same request may succeed later (rate limit, timeout, a cut stream)
	Overflow  bool // the request is longer than the model's context
	Unserved  bool // the server does not serve the model to this account, whatever the request; another may
	Status    int  // of HTTP; 0: there was no response
	Err       error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Reason + ": " + e.Err.Error()
	}
	return e.Reason
}

// GoString implements %#v like Error: Detail may quote the prompt.
func (e *Error) GoString() string { return e.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Detail returns the text of an error for operators, including the text of the model's server.
func Detail(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Detail != "" {
		return err.Error() + " (" + e.Detail + ")"
	}
	return err.Error()
}
