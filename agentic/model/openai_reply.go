package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// reading assembles one reply, from the chunks of a stream or from a whole one.
type reading struct {
	say     func(string)
	think   thinking
	text    strings.Builder
	parts   []*callParts
	size    int // received bytes, thinking included
	finish  string
	refused bool
	in, out int // tokens, if the server reports them

	// Of an attempt that failed:
	failure    failure
	retryAfter time.Duration // 0: unspecified
	unstreamed bool          // the server answered a streaming request without a stream
}

// callParts is a call while its pieces arrive.
type callParts struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// errTooLarge ends the reading of an endless reply.
var errTooLarge = fmt.Errorf("the model's reply is larger than %d bytes or %d calls", maxOutputBytes, maxCalls)

func (r *reading) chunk(c openai.ChatCompletionChunk) error {
	r.count(c.Usage)
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		if err := r.addText(d.Content); err != nil {
			return err
		}
		for _, t := range d.ToolCalls {
			f := t.Function
			if err := r.addCall(t.Index, t.ID, f.Name, written(f.Arguments, f.JSON.Arguments.Raw())); err != nil {
				return err
			}
		}
		r.refused = r.refused || d.Refusal != ""
		if choice.FinishReason != "" {
			r.finish = choice.FinishReason
		}
	}
	return nil
}

func (r *reading) completion(c *openai.ChatCompletion) error {
	r.count(c.Usage)
	if len(c.Choices) == 0 { // an error, despite the status
		return &ssestream.StreamError{Message: "no choices", Event: ssestream.Event{Data: []byte(c.RawJSON())}}
	}
	choice := c.Choices[0]
	r.refused, r.finish = choice.Message.Refusal != "", choice.FinishReason
	if err := r.addText(choice.Message.Content); err != nil {
		return err
	}
	for i, t := range choice.Message.ToolCalls {
		if err := r.addCall(int64(i), t.ID, t.Function.Name, written(t.Function.Arguments, t.Function.JSON.Arguments.Raw())); err != nil {
			return err
		}
	}
	return nil
}

// count retains the last counts: servers that send several send sums.
func (r *reading) count(u openai.CompletionUsage) {
	if u.PromptTokens+u.CompletionTokens > 0 {
		r.in, r.out = int(u.PromptTokens), int(u.CompletionTokens)
	}
}

func (r *reading) addText(piece string) error {
	if r.size += len(piece); r.size > maxOutputBytes {
		return errTooLarge
	}
	r.show(r.think.next(piece))
	return nil
}

func (r *reading) show(text string) {
	if text != "" {
		r.text.WriteString(text)
		r.say(text)
	}
}

func (r *reading) addCall(index int64, id, name, arguments string) error {
	p := r.partsAt(index)
	if p == nil || p.endsBefore(id, name, arguments) {
		p = &callParts{index: index}
		r.parts = append(r.parts, p)
	}
	if r.size += len(name) + len(arguments); r.size > maxOutputBytes || len(r.parts) > maxCalls {
		return errTooLarge
	}
	if p.id == "" {
		p.id = id
	}
	if name != p.name && p.arguments.Len() == 0 { // otherwise the name is repeated with every piece
		p.name += name
	}
	p.arguments.WriteString(arguments)
	return nil
}

// partsAt returns the last call with this index.
func (r *reading) partsAt(index int64) *callParts {
	for i := len(r.parts) - 1; i >= 0; i-- {
		if r.parts[i].index == index {
			return r.parts[i]
		}
	}
	return nil
}

// endsBefore reports whether a piece with the same index begins another call: some servers send
// whole calls and number all of them 0.
func (p *callParts) endsBefore(id, name, arguments string) bool {
	if id != "" && p.id != "" {
		return id != p.id
	}
	whole := func() bool { return json.Valid([]byte(unfence(p.arguments.String()))) }
	return name != "" && (name != p.name || arguments != "") && whole()
}

// written returns the arguments of a call, which some servers send as an object where the API has
// a string.
func written(arguments, raw string) string {
	if arguments == "" && strings.HasPrefix(raw, "{") {
		return raw
	}
	return arguments
}

// calls returns the received calls; a call without arguments has none to write.
func (r *reading) calls() []Call {
	var calls []Call
	for _, p := range r.parts {
		arguments := unfence(p.arguments.String())
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}"
		}
		calls = append(calls, Call{ID: p.id, Name: p.name, Arguments: arguments})
	}
	return calls
}

// finished ends the reading and decides by the finish reason whether the reply is whole.
func (r *reading) finished() *Error {
	r.show(r.think.end())
	switch {
	case r.refused:
		return &Error{Reason: "the model refused to answer"}
	case r.finish == "":
		return &Error{Reason: "the model's answer was cut off", Retryable: true}
	case r.finish == "length":
		return &Error{Reason: "the model's answer reached the token limit"}
	case r.finish == "content_filter":
		return &Error{Reason: "the model's answer was withheld by a content filter"}
	case len(r.parts) > 0 && (r.finish == "tool_calls" || r.finish == "stop" || r.finish == "function_call"):
		return nil
	case r.finish != "stop":
		return &Error{Reason: "the model did something else than answer"}
	case strings.TrimSpace(r.text.String()) == "":
		return &Error{Reason: "the model answered with nothing", Retryable: true}
	}
	return nil
}

// maxCallID bounds an id that is sent back to a server.
const maxCallID = 40

// identify gives every call a unique id within the conversation: its own one, or a generated one
// if a server sent none or repeated one.
func identify(calls []Call, history []Message) []Call {
	taken := map[string]bool{"": true}
	n := 0
	for _, m := range history {
		for _, c := range m.Calls {
			taken[c.ID] = true
			n++
		}
	}
	for i := range calls {
		c := &calls[i]
		for taken[c.ID] || len(c.ID) > maxCallID {
			n++
			c.ID = fmt.Sprintf("call_%d", n)
		}
		taken[c.ID] = true
	}
	return calls
}
